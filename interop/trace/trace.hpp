// A recorded program: every allocation and free that reached its allocator, in order. The three
// readers make it from their formats; replay, write.hpp and the command take it. Read next:
// builder.hpp, which keeps the invariants below.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "interop/trace/trace_error.hpp"

namespace cistern::trace {

enum class EventKind : std::uint8_t {
  kAllocate,
  kFree,     ///< the program freed the allocation
  kUsesEnd,  ///< the uses of a freed allocation by other streams have ended
};

/// One allocation, one free, or the end of one allocation's uses. A million of them are 24 MB.
struct TraceEvent {
  std::uint64_t value = 0;     ///< kAllocate: bytes asked for; otherwise: which allocation, from 0
  std::uint64_t delta_us = 0;  ///< microseconds since the event before it
  int stream = 0;              ///< the allocation's stream
  EventKind kind = EventKind::kAllocate;

  bool isAllocation() const { return kind == EventKind::kAllocate; }
  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};
static_assert(sizeof(TraceEvent) <= 24);

/// Whether a trace says until when other streams use a block that the program has freed.
enum class StreamUses : std::uint8_t {
  kNotSaid,   ///< nothing is said: every free counts as ordered in its allocation's stream
  kRecorded,  ///< each use that outlasted its free has a kUsesEnd
  kMissing,   ///< the recorder left them out, although the program has several streams
};

/// Invariants, checked by audit():
///   the allocations in `events`, numbered in order from 0, are `allocations` many;
///   a free names an earlier allocation, and none names the same one as another;
///   the same holds of kUsesEnd, and the allocation was freed earlier;
///   stream_uses != kNotSaid if there is a kUsesEnd;
///   0 <= stream < streams; duration_us == the sum of delta_us;
///   peak_requested_bytes == the most bytes allocated and not yet freed after any event, <= 2^60.
struct Trace {
  std::string name;
  std::vector<std::string> notes;  ///< the file's comments, and what the reader left out
  std::vector<TraceEvent> events;
  std::uint64_t allocations = 0;
  int streams = 1;  ///< streams are 0 … streams - 1; 0 is the default one, even if unused
  std::vector<std::uint64_t> stream_names;  ///< the file's own, by stream; a number or an address
  std::uint64_t peak_requested_bytes = 0;
  std::uint64_t duration_us = 0;
  StreamUses stream_uses = StreamUses::kNotSaid;

  /// Two recordings of one program are equal, whatever their files call its streams.
  friend bool operator==(const Trace& a, const Trace& b) {
    const auto facts = [](const Trace& t) {
      return std::tie(t.name, t.notes, t.events, t.allocations, t.streams, t.peak_requested_bytes,
                      t.duration_us);
    };
    return facts(a) == facts(b);
  }
};

/// How much of a file is taken into memory.
struct ReadLimits {
  /// The most that gzip data may unpack to. None: 8 MiB, or a hundred times what it takes packed
  /// if that is more; recorded programs unpack to four or five times that.
  std::optional<std::uint64_t> unpacked_bytes;
};

/// The recorded programs of one file: one, but for a PyTorch memory snapshot of several GPUs. That
/// has one for each GPU with a history.
struct Recordings {
  std::vector<Trace> traces;          ///< at least one, and each has an event
  std::vector<std::string> gpus;      ///< of a snapshot, for each trace: "cuda:1"; else empty
  bool of_several = false;            ///< the file has several GPUs, though one may be chosen
  std::vector<std::string> left_out;  ///< for people: memory in the file that no trace has
};

/// Reads a trace file in any of the three formats (see docs/traces.md), plain or gzip, told apart
/// by content; "-" is the standard input. `gpu` chooses one of a snapshot's. If the file has
/// several, each trace's name ends in its GPU: "run [cuda:1]". Throws TraceError naming the place
/// and what was expected there. Throws it also for a file that records nothing, and for a `gpu`
/// that the file has not or that its format has not.
Recordings readTraces(const std::filesystem::path& path, const ReadLimits& limits = {},
                      std::optional<std::uint32_t> gpu = std::nullopt);

/// The same for text already in memory and not compressed; `file` is what errors call it. A trace
/// has a name only if the text has.
Recordings parseTraces(std::string_view content, const std::string& file,
                       std::optional<std::uint32_t> gpu = std::nullopt);

/// The one trace of a file. Throws TraceError as readTraces does, and if there are several.
Trace readTrace(const std::filesystem::path& path, const ReadLimits& limits = {});
Trace parseTrace(std::string_view content, const std::string& file);

/// Walks the whole trace; aborts on the first invariant that does not hold.
void audit(const Trace& trace);

}  // namespace cistern::trace
