// Gathers events into a Recording and keeps its invariants, whatever the format. It knows no file:
// complaints go to an ErrorSite. The readers drive it. Read next: read_recording.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "interop/recording/recording_model.hpp"
#include "interop/trace/hash.hpp"
#include "interop/trace/read_limits.hpp"
#include "interop/trace/trace_error.hpp"

namespace cistern::recording {

/// The most failed requests, marks, labels or pools, and the most frames: more than any program
/// has, and few enough for memory.
inline constexpr std::size_t kMostRows = 1 << 20;

/// A verb fails at the site, and then has changed nothing, if a number names nothing that was
/// defined before.
class RecordingBuilder {
 public:
  /// `site` names the place of what is being added, and must outlive the builder. With kCalls it
  /// passes over events that are no calls, and over places, so that only the time of these counts.
  explicit RecordingBuilder(const trace::ErrorSite& site,
                            trace::Detail detail = trace::Detail::kAll);

  // ---- Definitions. Each returns its number. ----

  std::uint32_t addFrame(Frame frame);
  std::uint32_t addStack(std::uint64_t parent, std::uint64_t frame);
  std::uint32_t addLabel(std::uint64_t parent, std::string name);
  std::uint32_t addPool(PoolName name);
  /// The same, but the number of an equal one that is there already.
  std::uint32_t pool(PoolName name);

  // ---- Events. `stream` is the format's own name for a stream, 0 for the default one. ----

  /// Returns the allocation's number. Fails beyond 2^60 bytes live.
  std::uint64_t allocate(std::uint64_t bytes, std::uint64_t stream, const Place& place = {});
  void free(std::uint64_t allocation);
  void endUses(std::uint64_t allocation);

  // These return whether the recording has the event: with kCalls it has not.

  /// Pre: kind is one of kReserve, kRelease, kMap, kUnmap.
  bool memory(EventKind kind, std::uint64_t address, std::uint64_t bytes, std::uint64_t stream,
              std::uint64_t pool, Location location = Location::kDevice);
  /// `failure.requested` is the size of the event.
  bool fail(std::uint64_t stream, const Place& place, Failure failure);
  bool mark(std::string text);

  // ---- More of the event that came last, for formats that say it later. ----

  /// It came `delta_us` after the one before it. Pre: there is one, and this was not said of it
  /// yet. Events of which it is not said come at once.
  void setDelta(std::uint64_t delta_us);
  /// Pre: it is no kFree, kUsesEnd or kMark.
  void setPlace(std::uint64_t address, std::uint64_t stack, std::uint64_t label,
                std::uint64_t pool);
  /// Pre: it is one of memory().
  void setLocation(Location location);
  /// Pre: it is a kMap or kUnmap.
  void setStaysMapped();
  /// Pre: it is a failed request.
  void setFailure(Failure failure);

  // ---- The whole ----

  void rename(std::string name);
  void setDevice(std::string device);
  void setSource(Source source) { recording_.source = source; }
  void setStreamUses(StreamUses uses) { recording_.stream_uses = uses; }
  /// So many events, of those that are or will be there, tell what was there before.
  void setFirstRecorded(std::uint64_t events) {
    if (keeps_all_) recording_.first_recorded = events;
  }
  /// Beyond trace::kMaxNotes it is dropped.
  void note(std::string text);
  /// Makes room for so many events. A guess that is too high costs address space alone.
  void expectEvents(std::size_t count) { recording_.events.reserve(count); }
  /// The program's own name of a stream, if that is not the one that events had. A replay says of
  /// streams what the file says of events, so kCalls passes over it.
  void nameStream(std::uint64_t stream, std::uint64_t name) {
    if (keeps_all_) own_names_[stream] = name;
  }

  /// The recording so far.
  const Recording& soFar() const { return recording_; }
  /// How many streams events have, with the default one.
  std::size_t streams() const { return recording_.streams.size(); }

  /// The recording; the builder is spent. Fails if fewer events came than setFirstRecorded said.
  Recording finish();

 private:
  enum class State : std::uint32_t { kLive, kFreed, kUnused };
  struct Allocation {
    std::uint32_t event : 30;
    std::uint32_t state : 2;
  };
  using PairKey = std::pair<std::uint64_t, std::uint64_t>;
  template <class Key, class Hash>
  using Numbers = std::unordered_map<Key, std::uint32_t, Hash>;

  Event& push(EventKind kind, std::uint64_t value, std::uint64_t stream);
  void pushOf(EventKind kind, std::uint64_t allocation);
  Allocation& known(std::uint64_t allocation);
  std::uint32_t streamNumber(std::uint64_t stream);
  void require(std::uint64_t number, std::size_t end, std::string_view what) const;
  void requireRoom(std::size_t size, std::string_view what) const;
  void require(std::uint64_t stack, std::uint64_t label, std::uint64_t pool) const;
  void putPlace(const Place& place);
  void countTimes();

  const trace::ErrorSite& site_;
  const bool keeps_all_;
  bool has_last_ = false;  // the event that came last is the recording's last
  Recording recording_;
  std::vector<Allocation> allocations_;
  std::uint64_t live_bytes_ = 0;
  std::uint64_t now_us_ = 0;
  Numbers<std::uint64_t, trace::SeededHash> streams_{{0, 0}};
  std::uint64_t last_stream_ = 0;  // programs stay on a stream for long: spares most look-ups
  std::uint32_t last_number_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t, trace::SeededHash> own_names_;
  Numbers<PairKey, trace::SeededPairHash> pool_numbers_;
};

}  // namespace cistern::recording
