// The frees of a capture that wait. They are blocks that several of its streams have used, or that
// were allocated in a part which their stream no longer records. It owns those that a stream of the
// capture may have again, and those that nobody has before the capture is over. Guarded by the lock
// of its recording; it takes heaps' locks one at a time.
//
//   a block waits for a mark of every stream that has used it
//   a stream that may not have the first of a queue may have none of those behind
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <new>
#include <utility>
#include <vector>

#include "allocator/engine/capture/captured_streams.hpp"
#include "allocator/engine/events/stream_uses.hpp"

namespace cistern {

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
           block.granules <= request.granules + request.granules / 8;
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
