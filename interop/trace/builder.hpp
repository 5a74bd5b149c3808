// Gathers events into a Trace and keeps its invariants, whatever the format. It knows no file:
// complaints go to an ErrorSite.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "interop/trace/hash.hpp"
#include "interop/trace/trace.hpp"

namespace cistern::trace {

/// The largest allocation, and the most bytes live at once: 2^60, beyond which no device can serve.
inline constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 60;
/// The largest stream number, and the most streams.
inline constexpr std::uint64_t kMaxStreams = 1'000'000;
/// The longest trace in microseconds: far from overflow, 36,000 years.
inline constexpr std::uint64_t kLongestUs = std::uint64_t{1} << 60;
/// The most comments that a trace keeps. One of two bytes takes thirty times that in memory.
inline constexpr std::size_t kMaxNotes = 65'536;

class TraceBuilder {
 public:
  /// `site` names the place of what is being added, and must outlive the builder.
  explicit TraceBuilder(const ErrorSite& site) : site_(site) {}

  /// Appends an allocation and returns its number. `stream` is the format's own name for a stream,
  /// 0 for the default one; others are numbered as they appear.
  std::uint64_t allocate(std::uint64_t bytes, std::uint64_t stream);

  /// Appends a free. Fails if there is no such allocation yet or it is free already.
  void free(std::uint64_t allocation);

  /// Appends the end of the uses of a freed allocation by other streams. Fails if there is no such
  /// allocation yet, it is not free, or its uses have ended already.
  void endUses(std::uint64_t allocation);

  /// Says that the last event came `delta_us` after the one before it. Pre: there is one, and this
  /// was not said of it yet. Events of which it is not said come at once.
  void setDelta(std::uint64_t delta_us);

  void rename(std::string name) { trace_.name = std::move(name); }
  /// Beyond kMaxNotes it is dropped.
  void note(std::string text) {
    if (trace_.notes.size() < kMaxNotes) trace_.notes.push_back(std::move(text));
  }
  /// Says what the trace knows of other streams' uses. Without it a trace says nothing of them, or
  /// records them if endUses was called.
  void setStreamUses(StreamUses uses) { trace_.stream_uses = uses; }
  /// How many streams there are so far, with the default one.
  std::size_t streams() const { return streams_.size(); }

  /// The trace; the builder is spent.
  Trace finish();

 private:
  enum class State : std::uint8_t { kLive, kFreed, kUnused };
  struct Allocation {
    std::uint64_t bytes;
    int stream;
    State state = State::kLive;
  };

  Allocation& known(std::uint64_t allocation);
  int streamNumber(std::uint64_t stream);

  const ErrorSite& site_;
  Trace trace_;
  std::vector<Allocation> allocations_;
  std::unordered_map<std::uint64_t, int, SeededHash> streams_{{0, 0}};
  std::uint64_t last_stream_ = 0;  // programs stay on a stream for long: spares most look-ups
  int last_number_ = 0;
  std::uint64_t live_bytes_ = 0;
};

}  // namespace cistern::trace
