// A recorded program with all that its recorder knew: each block's address, call stack, label and
// pool, the memory that the allocator took from the device, and the requests that failed. A trace
// (interop/trace) has the sizes, streams and times alone, which a replay needs. The readers make
// one from each format that Cistern reads. `cistern report` draws it. Read next:
// recording_builder.hpp, which keeps the invariants below.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cistern/types.hpp"
#include "interop/trace/trace.hpp"

namespace cistern::recording {

/// A function that a call stack passes through. `line` is 0 if it is not known.
struct Frame {
  std::string function;
  std::string file;
  std::uint32_t line = 0;
};

/// A call stack: the innermost frame, and the stack of its caller. Stack 0 is the empty stack: the
/// recorder did not know it. Stacks that share callers share their records, so they form a tree.
struct StackNode {
  std::uint32_t parent = 0;  ///< < its own number
  std::uint32_t frame = 0;   ///< an index of Recording::frames
};

/// A label, and the label around it. Label 0 stands for no label.
struct LabelNode {
  std::uint32_t parent = 0;  ///< < its own number
  std::string name;
};

struct PoolName {
  std::uint64_t uuid = 0, uid = 0;  ///< {0, 0}: the default pool, which is pool 0
};

enum class EventKind : std::uint8_t {
  kAllocate,
  kFree,     ///< the program freed the allocation
  kUsesEnd,  ///< the uses of a freed allocation by other streams have ended
  kReserve,  ///< the allocator took a segment from the device
  kRelease,  ///< the allocator gave a segment back to the device
  kMap,      ///< addresses have device memory behind them now
  kUnmap,    ///< addresses have no device memory behind them any more
  kFailed,   ///< a request found no memory
  kMark,     ///< a moment that the program has named
};

/// One event. A million of them are 48 MB. kFree and kUsesEnd have the address, stack, label, pool
/// and stream of their allocation.
struct Event {
  std::uint64_t time_us = 0;  ///< since the recording began; never falls
  /// kAllocate: bytes asked for. kFree, kUsesEnd: which allocation, from 0. kFailed: bytes asked
  /// for. kReserve … kUnmap: bytes. kMark: an index of Recording::marks.
  std::uint64_t value = 0;
  std::uint64_t address = 0;  ///< 0: the recorder did not know it
  std::uint32_t stack = 0;
  std::uint32_t label = 0;
  std::uint32_t pool = 0;
  std::uint32_t stream = 0;   ///< an index of Recording::streams
  std::uint32_t failure = 0;  ///< kFailed: an index of Recording::failures
  EventKind kind = EventKind::kAllocate;
  Location location = Location::kDevice;  ///< kReserve … kUnmap: of the memory
  /// kMap, kUnmap: no device call was made, because the device has the page mapped there before and
  /// after.
  bool stays_mapped = false;
};
static_assert(sizeof(Event) <= 48);

/// Free memory that did not serve a failed request, in bytes. `why` is a name of the enum
/// WhyUnused, such as "too_small" or "other_stream".
struct Unused {
  std::string why;
  std::uint64_t bytes = 0, largest = 0;
};

/// The recorder's facts of a failed request. All in bytes; 0 where it is not known.
struct Failure {
  std::uint64_t requested = 0, rounded = 0;
  std::uint64_t limit = 0, device_total = 0, device_free = 0, reserved = 0, allocated = 0;
  std::vector<Unused> unused;
  std::string advice;        ///< for people: what would have made it fit
  std::string device_error;  ///< the device's own words
};

/// The origin of a recording.
enum class Source : std::uint8_t { kTrace, kDump, kSnapshot, kPytorch, kRmm };

/// Invariants, checked by audit():
///   the allocations in `events`, numbered in order from 0, are `allocations` many;
///   a kFree names an earlier allocation, and none names the same one as another;
///   the same holds of kUsesEnd, and the allocation was freed earlier;
///   event.stack < stacks.size(), .label < labels.size(), .pool < pools.size(),
///   .stream < streams.size();
///   stacks[0], labels[0], pools[0] and streams[0] are the empty stack, no label, the default pool
///   and the default stream; node.parent < the node's own number;
///   time_us never falls from one event to the next;
///   location is kDevice unless the event is one of kReserve … kUnmap;
///   stays_mapped is false unless the event is a kMap or kUnmap;
///   first_recorded <= events.size();
///   all texts are UTF-8.
struct Recording {
  std::string name;
  std::string file;    ///< the path that it was read from
  std::string device;  ///< "cuda:0", or what the recorder called it; empty if it is not known
  Source source = Source::kTrace;
  std::vector<Event> events;
  std::uint64_t allocations = 0;
  /// Allocations before this event lived when the recording began.
  std::uint64_t first_recorded = 0;
  std::vector<Frame> frames;
  std::vector<StackNode> stacks{{}};
  std::vector<LabelNode> labels{{}};
  std::vector<PoolName> pools{{}};
  std::vector<std::uint64_t> streams{0};  ///< the file's own names, a number or an address
  std::vector<std::string> marks;
  std::vector<Failure> failures;
  std::vector<std::string>
      notes;                   ///< for people: what the reader left out, and the file's comments
  bool has_times = true;       ///< false: times count the events from first_recorded
  bool has_addresses = false;  ///< every allocation of more than 0 bytes has its address
  bool has_reserved = false;   ///< kReserve … kUnmap tell what the allocator had reserved
  trace::StreamUses stream_uses = trace::StreamUses::kNotSaid;
};

/// Walks the whole recording; aborts on the first invariant that does not hold.
void audit(const Recording& recording);

}  // namespace cistern::recording
