// The streams of one capture: which of them it records, as which of its parts, and how far each has
// come. It owns the parts, the order of their nodes, and the streams' marks. Guarded by the lock of
// its recording, under which it asks the device for frontiers. recording.hpp says what a mark and a
// part are.
//
//   a stream's marks follow each other: what follows mark i follows all up to i
//   a stream's marks, and its past, are of the part that it records at present
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

#include "allocator/engine/capture/order.hpp"
#include "allocator/engine/capture/pins.hpp"
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
    bool included = false;  ///< it may be recorded as another part
    Part* part = nullptr;   ///< that it recorded last; null: none yet, or it has left that
    CaptureOrder::Past past{};
    std::optional<bool> told{};  ///< whether the device told its past, once a request has asked
    std::vector<Mark> marks{};
    std::uint32_t unmarked = 0;           ///< frees since the last
    std::uint32_t share = kFreesOfAMark;  ///< it is time for a mark after so many
  };
  /// A mark of a stream; behind the last: the next one.
  struct Point {
    Seen* of;
    std::size_t mark;
  };

  /// `number`: of the first part.
  RecordedStreams(Device& device, KnownStreams& known, Pool& pool, std::uint32_t number)
      : device_(device), known_(known), pool_(pool), number_(number) {}

  /// The device has begun to record `origin`, and calls the capture `id`.
  void begin(Stream origin, std::uint64_t id) {
    parts_.push_back({id, number_, CaptureOrder(device_)});
    streams_.push_back({origin, false, &parts_.front()});
  }
  void include(Stream stream) {
    Seen* const of = seen(stream);
    (of ? *of : streams_.emplace_back(Seen{stream})).included = true;
  }
  /// Forgets all streams and parts.
  void clear() {
    streams_.clear();
    parts_.clear();
  }

  // ---- Which it records

  /// Null for a stream that the capture does not know. It stays where it is.
  Seen* seen(Stream stream) {
    const auto it = std::ranges::find(streams_, stream, &Seen::stream);
    return it != streams_.end() ? &*it : nullptr;
  }
  /// The stream, of which the device says this, if the capture records it; else null.
  Seen* recorded(Stream stream, const CaptureInfo& info);
  /// The stream records no part, or, from now on, the one with that id; it has no mark yet.
  static void endPart(Seen& of) { of = {of.stream, of.included}; }
  void beginPart(Seen& of, std::uint64_t id);
  std::uint32_t numberOf(const Seen& of) const { return of.part ? of.part->number : number_; }
  /// Whether the block was allocated in one of the parts.
  bool allocated(const Block& block) const {
    return std::ranges::find(parts_, block.epoch, &Part::number) != parts_.end();
  }
  /// The stream on which the block was allocated, if it records that part still; else null.
  Seen* allocating(const Block& block) {
    Seen* const of = seen(block.use.stream);
    return of && of->part && of->part->number == block.epoch ? of : nullptr;
  }

  // ---- How far they are

  /// Marks all that was freed on the stream by now. False where the stream does not tell what it
  /// has reached, or the host is short of memory: a mark that comes later is as safe, only less
  /// often followed.
  bool mark(Stream stream) noexcept;
  /// The stream has freed a block. Several frees share a mark.
  void noteFree(Seen& of) noexcept;
  /// Another stream asks what this one has freed.
  void markForOthers(Seen& of) noexcept;
  /// Whether it is known what the stream's next work would follow. The device is asked once for
  /// each request, which begins by resetting `told`. Throws std::bad_alloc, as the next two do.
  bool knowsPast(Seen& of);
  /// Whether that follows the point.
  bool follows(Seen& by, const Point& point) {
    const std::vector<Mark>& marks = point.of->marks;
    return point.of->part == by.part && point.mark < marks.size() && knowsPast(by) &&
           follows(by, marks[point.mark]);
  }
  /// The epochs of the heap's free blocks that the stream may take, apart from those that are
  /// complete. Pre: knowsPast(by).
  Epochs followed(Heap& heap, const Seen& by) CISTERN_REQUIRES(heap.mutex());

 private:
  static bool follows(const Seen& by, const Mark& mark) {
    return std::ranges::all_of(mark.nodes,
                               [&](GraphNode node) { return by.past.nodes.contains(node); });
  }
  bool frontierOf(Stream stream, Nodes& nodes);

  Device& device_;
  KnownStreams& known_;
  Pool& pool_;
  const std::uint32_t number_;
  std::deque<Part> parts_;  ///< the main one first
  std::deque<Seen> streams_;
};

}  // namespace cistern
