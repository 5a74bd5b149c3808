// The streams of one capture: which of them it records, as which of its parts, and how far each has
// come. It owns the parts, the order of their nodes, and the streams' marks. Guarded by the lock of
// its recording, under which it asks the device for frontiers. recording.hpp says what a mark and a
// part are.
//
//   a stream's marks follow each other: what follows mark i follows all up to i
//   a stream's marks are of the part that it records at present
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "allocator/engine/capture/order.hpp"
#include "allocator/engine/heap/heap.hpp"
#include "allocator/engine/streams/known_streams.hpp"

namespace cistern {

class RecordedStreams {
 public:
  using Nodes = CaptureOrder::Nodes;
  /// One graph: the capture's own, or the body of a conditional node.
  struct Part {
    std::uint64_t id;      ///< as the device names its capture
    std::uint32_t number;  ///< in what is allocated in it
    CaptureOrder order;
  };
  struct Mark {
    EpochMark ended;  ///< of the stream's heap
    Nodes nodes;
  };
  /// How many frees share a mark: at first, and when nobody has asked for a while.
  static constexpr std::uint32_t kFreesOfAMark = 8, kMostOfAMark = 64;
  /// A stream that the capture has recorded, or was told to.
  struct Seen {
    Stream stream;
    Part* part;                           ///< that it recorded last; null: none yet
    bool included = false;                ///< it may be recorded as another part
    std::vector<Mark> marks{};            ///< in that part
    std::uint32_t unmarked = 0;           ///< frees since the last
    std::uint32_t share = kFreesOfAMark;  ///< it is time for a mark after so many
  };
  /// A mark of a stream; behind the last: the next one.
  struct Point {
    Seen* of;
    std::size_t mark;
  };
  /// What a stream's next work would follow.
  struct Reach {
    const Part* part = nullptr;
    CaptureOrder::Reach lanes;
  };

  /// `number`: of the first part.
  RecordedStreams(Device& device, KnownStreams& known, Pool& pool, std::uint32_t number)
      : device_(device), known_(known), pool_(pool), number_(number) {}

  /// The device has begun to record `origin`, and calls the capture `id`.
  void begin(Stream origin, std::uint64_t id);
  void include(Stream stream) {
    Seen* const of = seen(stream);
    (of ? *of : streams_.emplace_back(Seen{stream, nullptr})).included = true;
  }
  /// Forgets all streams and parts.
  void clear() {
    streams_.clear();
    parts_.clear();
  }

  /// Null for a stream that the capture does not know. It stays where it is.
  Seen* seen(Stream stream) {
    const auto it = std::ranges::find(streams_, stream, &Seen::stream);
    return it != streams_.end() ? &*it : nullptr;
  }
  /// Whether the capture records a stream of which the device says this.
  bool records(Stream stream, const CaptureInfo& info);
  /// The stream records its part no more, and no other yet.
  static void endPart(Seen& of) {
    of.part = nullptr;
    of.marks.clear();
    of.unmarked = 0;
  }
  /// The stream records the part with that id from now on, with no mark yet.
  void beginPart(Seen& of, std::uint64_t id);
  /// The number of the part that the stream records.
  std::uint32_t numberOf(Stream stream) {
    const Seen* const of = seen(stream);
    return of && of->part ? of->part->number : number_;
  }
  /// Whether the block was allocated in one of the parts.
  bool allocated(const Block& block) const {
    return std::ranges::find(parts_, block.epoch, &Part::number) != parts_.end();
  }

  /// What the stream's next work would follow. False where the device does not tell.
  bool reachOf(Stream stream, Reach& reach);
  /// Marks all that was freed on the stream by now. False where the stream does not tell what it
  /// has reached, or the host is short of memory: a mark that comes later is as safe, only less
  /// often followed.
  bool mark(Stream stream) noexcept;
  /// The stream has freed a block. Several frees share a mark.
  void noteFree(Seen& of) noexcept;
  /// Another stream asks what this one has freed.
  void markForOthers(Seen& of) noexcept;
  /// Whether what has that reach follows the point.
  static bool follows(const Reach& reach, const Point& point) {
    const std::vector<Mark>& marks = point.of->marks;
    return point.of->part == reach.part && point.mark < marks.size() &&
           follows(reach, marks[point.mark]);
  }
  /// The epochs of the heap's free blocks that may be taken with that reach, apart from those that
  /// are complete.
  Epochs followed(Heap& heap, const Reach& reach) CISTERN_REQUIRES(heap.mutex());

 private:
  static bool follows(const Reach& reach, const Mark& mark) {
    return std::ranges::all_of(
        mark.nodes, [&](GraphNode node) { return reach.part->order.follows(reach.lanes, node); });
  }
  bool frontierOf(Stream stream, Nodes& nodes);

  Device& device_;
  KnownStreams& known_;
  Pool& pool_;
  const std::uint32_t number_;
  std::deque<Part> parts_;  ///< the main one first
  std::deque<Seen> streams_;
};

/// Unique among captures, and parts of them, that overlap; never 0, nor Request::kLent.
std::uint32_t nextRecording();

}  // namespace cistern
