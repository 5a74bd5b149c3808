// The streams of one capture: which of them it records, as which of its parts, and how far each has
// come. It owns the parts, the order of their nodes, and the streams' marks. Guarded by the lock of
// its capture, under which it asks the device for frontiers. live_capture.hpp says what a mark and
// a part are.
//
//   a stream's marks follow each other: what follows mark i follows all up to i
//   a stream's marks, and its past, are of the part that it records at present
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <new>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "allocator/base/bounds.hpp"
#include "allocator/engine/core/pool.hpp"
#include "allocator/engine/events/known_streams.hpp"
#include "allocator/engine/events/stream_uses.hpp"
#include "allocator/engine/ground/holds.hpp"

namespace cistern {

/// The order of captured work, within one capture that is under way. A stream that has waited for
/// another follows what that had captured by then. The driver knows it as the stream's frontier:
/// the nodes that its next work would depend on.
///
/// The work that a stream follows is kept as a set of nodes, which is extended to the present
/// frontier when somebody asks. So a question costs one look-up. A node is looked at once for each
/// stream that asks, and the device tells once what it depends on.
class CaptureOrder {
 public:
  using Nodes = std::vector<GraphNode>;
  /// The nodes that a stream's next work would follow.
  struct Past {
    std::unordered_set<GraphNode> nodes;
    Nodes unseen{};  ///< is part of it too, with all before: where the device did not tell
  };

  explicit CaptureOrder(Device& device) : device_(device) {}

  /// Extends the past of a stream that has come to `frontier` by now. False when the device does
  /// not tell; then the past lacks some of its nodes until it does. Throws std::bad_alloc; then the
  /// past may lack some for good, which is as safe.
  bool extend(Past& past, const Nodes& frontier) {
    Nodes& unseen = past.unseen;
    unseen.insert(unseen.end(), frontier.begin(), frontier.end());
    while (!unseen.empty()) {  // no recursion: a capture may be a chain of many thousand nodes
      const GraphNode node = unseen.back();
      if (past.nodes.contains(node)) {
        unseen.pop_back();
        continue;
      }
      const auto [known, asked] = dependencies_.try_emplace(node);
      if (asked && !device_.nodeDependencies(node, known->second).ok()) {
        dependencies_.erase(known);
        return false;
      }
      unseen.pop_back();
      past.nodes.insert(node);
      unseen.insert(unseen.end(), known->second.begin(), known->second.end());
    }
    return true;
  }

 private:
  Device& device_;
  std::unordered_map<GraphNode, Nodes> dependencies_;
};

class CapturedStreams {
 public:
  using Nodes = CaptureOrder::Nodes;
  /// One graph: the capture's own, or the body of a conditional node.
  struct Part {
    std::uint64_t id;      ///< as the device names its capture
    std::uint32_t number;  ///< in what is allocated in it
    CaptureOrder order;
  };
  struct Mark {
    /// An epoch of the stream's heap, and of its heap of overflow; 0 where it has none.
    std::array<std::uint64_t, 2> ended;
    Nodes nodes;
  };
  /// How many calls each request, and each free, adds to what marks may take: a mark asks every
  /// stream.
  static constexpr std::ptrdiff_t kCallsEach = bound(32);
  /// How many frees share a mark: at first, and when nobody has asked for a while.
  static constexpr std::uint32_t kFreesOfAMark = bound(8), kMostOfAMark = bound(64);
  /// A stream that the capture has captured, or was told to.
  struct Seen {
    Stream stream;
    bool included = false;  ///< it may be captured as another part
    Part* part = nullptr;   ///< that it captured last; null: none yet, or it has left that
    CaptureOrder::Past past{};
    std::vector<Mark> marks{};
    std::uint64_t asked = 0;              ///< the last request that asked for the next
    std::size_t followed = 0;             ///< how many of its marks that request's stream follows
    std::uint32_t unmarked = 0;           ///< frees since the last mark
    std::uint32_t share = kFreesOfAMark;  ///< how many frees share the next mark
  };
  /// A mark of a stream. A number behind the last mark means the stream's next mark.
  struct Point {
    Seen* of;
    std::size_t mark;
  };

  CapturedStreams(Device& device, KnownStreams& known, Pool& pool)
      : device_(device), known_(known), pool_(pool) {}

  /// The device has begun to record `origin`, as the first part.
  void begin(Stream origin, std::uint64_t id, std::uint32_t number) {
    parts_.push_back({id, number, CaptureOrder(device_)});
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
  /// The stream that the device describes by `info`, if the capture records it; else null.
  Seen* captured(Stream stream, const CaptureInfo& info);
  /// The stream records the part with that id from now on; it has no mark yet.
  void beginPart(Seen& of, std::uint64_t id);
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

  /// Marks all that was freed on the stream by now. False if the stream does not tell what it has
  /// reached, or the host is short of memory. A mark that comes later is as safe, only less often
  /// followed.
  bool mark(Stream stream) noexcept;
  /// The mark of the stream that covers all that it has captured by now. It is a new one, or the
  /// next, if marks have taken too many calls lately. Its `of` is null if mark() would be false.
  Point cover(Stream stream) noexcept;
  /// The mark that a stream will have next. Pre: the capture knows the stream.
  Point next(Stream stream) {
    Seen* const of = seen(stream);
    return {of, of->marks.size()};
  }
  /// The stream has freed a block. Several frees share a mark.
  void noteFree(Seen& of) noexcept;
  /// A free in the capture's pool begins.
  void beginFree() noexcept { allowCalls(); }
  /// A request of that stream begins. The device tells what the stream follows, once per request,
  /// when there is something to find. Null for a stream that the capture does not know.
  Seen* beginRequest(Stream stream) {
    told_.reset();
    ++request_;
    allowCalls();
    return by_ = seen(stream);
  }
  /// How many of the stream's marks the request's stream follows. It follows all of its own, those
  /// to come included. It follows none if the device does not tell, or the host is short of memory.
  std::size_t followed(Seen& of) noexcept;
  bool follows(const Point& point) noexcept { return point.mark < followed(*point.of); }
  /// The epochs of that heap of the stream's whose free blocks the request may take, apart from
  /// those that are complete. Pre: followed(of) was asked; the stream is another than the
  /// request's.
  static Epochs epochsFollowed(const Seen& of, const Heap& heap);

 private:
  void allowCalls() noexcept { calls_left_ = std::min(calls_left_ + kCallsEach, kCallsEach); }
  bool affordsMark() const { return calls_left_ > 0; }
  bool knowsPast();
  bool addFrontiers(const Seen& of, Nodes& nodes);
  /// The stream, which has come to those nodes; null if that is unknown.
  Seen* frontierOf(Stream stream, Nodes& nodes);

  Device& device_;
  KnownStreams& known_;
  Pool& pool_;
  std::deque<Part> parts_;  ///< the main one first
  std::deque<Seen> streams_;
  Seen* by_ = nullptr;                      ///< the request's
  std::uint64_t request_ = 0;               ///< its number
  std::ptrdiff_t calls_left_ = kCallsEach;  ///< marks may take; below 0 where the last took more
  std::optional<bool> told_;  ///< whether the device told what it follows, once that was asked
};

// ---- The frees that wait -----------------------------------------------------------------------
//
// They are blocks that several of its streams have used, or that
// were allocated in a part which their stream no longer records. It owns those that a stream of the
// capture may have again, and those that nobody has before the capture is over. Guarded by the lock
// of its capture; it takes heaps' locks one at a time.
//
//   a block waits for a mark of every stream that has used it
//   a stream that may not have the first of a queue may have none of those behind

class WaitingFrees {
 public:
  using Seen = CapturedStreams::Seen;
  /// Pending blocks that wait until the capture is over.
  struct Left {
    PendingBlocks free;     ///< used by what was captured only, which has not run
    PendingBlocks unknown;  ///< there was no memory to say what they wait for
    std::vector<std::pair<Block*, StreamUses>> outside;  ///< used on streams it does not record
  };

  explicit WaitingFrees(CapturedStreams& streams) : streams_(streams) {}

  /// A pending block waits for all that `users` have captured by now. `present`: its stream still
  /// records the part in which it was allocated. If the host is short of memory, nobody gets the
  /// block before the capture is over. As a rule, a block that one stream alone has used will be
  /// used there again: it waits for the next mark.
  void add(Block& block, const StreamUses& users, bool present) noexcept try {
    if (users.unknown()) return left_.unknown.push(block);
    const bool alone = present && users.size() == 1;
    Waiting waiting{&block, {}};
    StreamUses outside;
    for (const Stream user : users) {
      const CapturedStreams::Point point = alone ? streams_.next(user) : streams_.cover(user);
      point.of ? waiting.points.push_back(point) : outside.note(user);
    }
    if (!outside.empty()) {
      left_.outside.emplace_back(&block, std::move(outside));
    } else if (present) {
      const std::vector<Stream> all(users.begin(), users.end());
      queues_[{heapOf(block).number(), all}].push_back(std::move(waiting));
    } else {
      left_.free.push(block);
    }
  } catch (const std::bad_alloc&) {
    left_.unknown.push(block);
  }
  /// Nobody gets what the stream has used, or freed in its heap, before the capture is over. `heap`
  /// may be null.
  void keepApart(Stream stream, Heap* heap) {
    if (heap != nullptr) {
      const MutexLock lock(heap->mutex());
      for (Block* block : incompleteBlocks(*heap)) {
        heap->setAside(*block);
        left_.free.push(*block);
      }
    }
    for (auto& [of, queue] : queues_) {
      if (std::ranges::find(of.second, stream) == of.second.end()) continue;
      for (const Waiting& waiting : queue) left_.free.push(*waiting.block);
      queue.clear();
    }
  }
  /// Takes all that waits; then nothing does.
  Left takeAll() noexcept {
    for (const auto& [of, queue] : queues_) {
      for (const Waiting& waiting : queue) left_.free.push(*waiting.block);
    }
    queues_.clear();
    return std::exchange(left_, {});
  }

  /// The best block that the request's stream may have; null for none.
  Block* take(const Request& request) noexcept {
    std::deque<Waiting>* from = nullptr;
    std::deque<Waiting>::iterator best;
    for (auto& [of, queue] : queues_) {
      const auto end = queue.begin() + std::min(std::ssize(queue), kLookedAt);
      for (auto it = queue.begin(); it != end; ++it) {
        if (!fits(*it->block, request)) continue;
        if (from != nullptr && it->block->granules >= best->block->granules) continue;
        if (!mayHave(*it)) break;
        from = &queue;
        best = it;
      }
    }
    if (from == nullptr) return nullptr;
    Block* const block = best->block;
    from->erase(best);
    Heap& home = heapOf(*block);
    const MutexLock lock(home.mutex());
    home.reissue(*block, request);
    return block;
  }
  /// Puts the blocks of its heap that the stream may have back there as free memory. True if there
  /// were any.
  bool putBack(Heap& heap, Seen& by, std::uint64_t tick) noexcept {
    bool any = false;
    for (auto& [of, queue] : queues_) {
      if (of.first != heap.number()) continue;
      for (; !queue.empty() && mayHave(queue.front()); queue.pop_front()) {
        const MutexLock lock(heap.mutex());
        heap.release(*queue.front().block, tick);
        ++by.unmarked;
        any = true;
      }
    }
    return any;
  }

 private:
  static constexpr std::ptrdiff_t kLookedAt = 64;  ///< blocks of each queue, for one request
  struct Waiting {
    Block* block;
    std::vector<CapturedStreams::Point> points;  ///< one for each user
  };
  // The block is handed out whole, so it must not be much larger than the request.
  static bool fits(const Block& block, const Request& request) {
    return segmentOf(block).kind == request.kind && heapOf(block).overflow() == request.overflow &&
           block.granules >= request.granules &&
           block.granules <= request.granules + request.granules / 8 && isAligned(block, request);
  }
  bool mayHave(const Waiting& waiting) const noexcept {
    return std::ranges::all_of(waiting.points, [&](const CapturedStreams::Point& point) {
      return streams_.follows(point);
    });
  }

  CapturedStreams& streams_;
  /// By the number of their heap, and the streams that have used them.
  std::map<std::pair<std::size_t, std::vector<Stream>>, std::deque<Waiting>> queues_;
  Left left_;
};

}  // namespace cistern
