// A recorded program: its allocations and frees, and all that its recorder knew beside them: each
// block's address, call stack, label and pool, the memory that the allocator took from the device,
// and the requests that failed. The readers make one from each format that Cistern reads.
// `cistern report` draws it, and `cistern replay` reads the calls alone (Detail::kCalls), which
// take half the memory. Read next: recording_builder.hpp, which keeps the invariants below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cistern/types.hpp"

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

/// One event. A million of them are 24 MB.
struct Event {
  std::uint64_t time_us = 0;  ///< since the recording began; never falls
  /// kAllocate: bytes asked for. kFree, kUsesEnd: which allocation, from 0. kFailed: bytes asked
  /// for. kReserve … kUnmap: bytes. kMark: an index of Recording::marks.
  std::uint64_t value = 0;
  std::uint32_t stream = 0;  ///< an index of Recording::streams; of a free, its allocation's
  EventKind kind = EventKind::kAllocate;
  Location location = Location::kDevice;  ///< kReserve … kUnmap: of the memory
  /// kMap, kUnmap: no device call was made, because the device has the page mapped there before and
  /// after.
  bool stays_mapped = false;

  /// Whether it is one of the program's own calls, or ends the uses of one.
  bool isCall() const { return kind <= EventKind::kUsesEnd; }
  friend bool operator==(const Event&, const Event&) = default;
};
static_assert(sizeof(Event) <= 24);

/// Where an event took place, and who asked for it. kFree and kUsesEnd have that of their
/// allocation. A million of them are 24 MB.
struct Place {
  std::uint64_t address = 0;  ///< 0: the recorder did not know it
  std::uint32_t stack = 0;
  std::uint32_t label = 0;
  std::uint32_t pool = 0;
  std::uint32_t failure = 0;  ///< kFailed: an index of Recording::failures
  friend bool operator==(const Place&, const Place&) = default;
};
static_assert(sizeof(Place) <= 24);

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

/// Whether a recording says until when other streams use a block that the program has freed.
enum class StreamUses : std::uint8_t {
  kNotSaid,   ///< nothing is said: every free counts as ordered in its allocation's stream
  kRecorded,  ///< each use that outlasted its free has a kUsesEnd
  kMissing,   ///< the recorder left them out, although the program has several streams
};

/// The origin of a recording.
enum class Source : std::uint8_t { kTrace, kDump, kSnapshot, kPytorch, kRmm };

/// Invariants, checked by audit():
///   the allocations in `events`, numbered in order from 0, are `allocations` many;
///   a kFree names an earlier allocation, and none names the same one as another;
///   the same holds of kUsesEnd, and the allocation was freed earlier;
///   the most bytes that live at once are <= 2^60;
///   places has one place for each event, or none at all;
///   place.stack < stacks.size(), .label < labels.size(), .pool < pools.size();
///   event.stream < streams.size();
///   stacks[0], labels[0], pools[0] and streams[0] are the empty stack, no label, the default pool
///   and the default stream; node.parent < the node's own number;
///   time_us never falls from one event to the next;
///   location is kDevice unless the event is one of kReserve … kUnmap;
///   stays_mapped is false unless the event is a kMap or kUnmap;
///   first_recorded <= events.size();
///   stream_uses != kNotSaid if there is a kUsesEnd;
///   all texts are UTF-8.
struct Recording {
  std::string name;
  std::string file;    ///< the path that it was read from
  std::string device;  ///< "cuda:0", or what the recorder called it; empty if it is not known
  Source source = Source::kTrace;
  std::vector<Event> events;
  std::vector<Place> places;  ///< of the events; none where the recorder knew of none
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
  StreamUses stream_uses = StreamUses::kNotSaid;

  /// Pre: it is one of `events`.
  const Place& placeOf(const Event& event) const {
    static constexpr Place kUnknown;
    return places.empty() ? kUnknown : places[std::size_t(&event - events.data())];
  }
};

/// The most bytes, as asked, that live at once. Pre: the invariants of Recording hold.
std::uint64_t peakRequested(const Recording& recording);

/// Walks the whole recording; aborts on the first invariant that does not hold.
void audit(const Recording& recording);

}  // namespace cistern::recording
