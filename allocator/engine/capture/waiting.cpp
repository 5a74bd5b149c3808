#include "allocator/engine/capture/waiting.hpp"

#include <algorithm>
#include <new>

namespace cistern {
namespace {

constexpr std::size_t kLookedAt = 64;  // blocks of each queue, for one request

// It is handed out whole, so it must not be much larger.
bool fits(const Block& block, const Request& request) {
  return segmentOf(block).kind == request.kind && block.granules >= request.granules &&
         block.granules <= request.granules + request.granules / 8;
}

}  // namespace

// ---- Blocks come -------------------------------------------------------------------------------

// What one stream alone has used will be used there again, as a rule: it waits for the next mark.
void WaitingFrees::add(Block& block, const StreamUses& users, bool present) noexcept try {
  if (users.unknown()) return left_.unknown.push(block);
  const bool alone = present && users.size() == 1;
  Waiting waiting{&block, {}};
  StreamUses outside;
  for (const Stream user : users) {
    if (alone || streams_.mark(user)) {
      Seen* const of = streams_.seen(user);
      waiting.points.push_back({of, of->marks.size() - (alone ? 0 : 1)});
    } else {
      outside.note(user);
    }
  }
  if (!outside.empty()) {
    left_.outside.emplace_back(&block, std::move(outside));
  } else if (present) {
    queueOf(block, users).blocks.push_back(std::move(waiting));
  } else {
    left_.free.push(block);
  }
} catch (const std::bad_alloc&) {
  left_.unknown.push(block);
}

WaitingFrees::Queue& WaitingFrees::queueOf(const Block& block, const StreamUses& users) {
  Heap* const home = &heapOf(block);
  for (Queue& queue : queues_) {
    if (queue.home == home && queue.users == users) return queue;
  }
  return queues_.emplace_back(Queue{home, users, {}});
}

void WaitingFrees::keepApart(Stream stream, Heap* heap) {
  if (heap != nullptr) {
    const MutexLock lock(heap->mutex());
    for (Block* block : incompleteBlocks(*heap)) {
      heap->setAside(*block);
      left_.free.push(*block);
    }
  }
  for (Queue& queue : queues_) {
    if (!queue.users.contains(stream)) continue;
    for (const Waiting& waiting : queue.blocks) left_.free.push(*waiting.block);
    queue.blocks.clear();
  }
}

WaitingFrees::Left WaitingFrees::takeAll() noexcept {
  for (const Queue& queue : queues_) {
    for (const Waiting& waiting : queue.blocks) left_.free.push(*waiting.block);
  }
  queues_.clear();
  return std::exchange(left_, {});
}

// ---- Blocks leave ------------------------------------------------------------------------------

// What the stream alone has used is its own, in its own order, which nobody is asked for.
bool WaitingFrees::mayHave(Seen& by, const Queue& queue, const Waiting& waiting) {
  if (queue.users.size() == 1 && queue.users.front() == by.stream) return true;
  const RecordedStreams::Point& last = queue.blocks.back().points.front();
  if (last.mark == last.of->marks.size()) streams_.markForOthers(*last.of);
  return std::ranges::all_of(waiting.points, [&](const RecordedStreams::Point& point) {
    return streams_.follows(by, point);
  });
}

bool WaitingFrees::putBack(Heap& heap, Seen& by, std::uint64_t tick) {
  bool any = false;
  for (Queue& queue : queues_) {
    if (queue.home != &heap) continue;
    while (!queue.blocks.empty() && mayHave(by, queue, queue.blocks.front())) {
      const MutexLock lock(heap.mutex());
      heap.release(*queue.blocks.front().block, tick);
      queue.blocks.pop_front();
      ++by.unmarked;
      any = true;
    }
  }
  return any;
}

Block* WaitingFrees::take(const Request& request, Seen& by) {
  Queue* from = nullptr;
  std::deque<Waiting>::const_iterator best;
  for (Queue& queue : queues_) {
    const auto end =
        queue.blocks.begin() + std::ptrdiff_t(std::min(queue.blocks.size(), kLookedAt));
    for (auto it = queue.blocks.cbegin(); it != end; ++it) {
      if (!fits(*it->block, request)) continue;
      if (from != nullptr && it->block->granules >= best->block->granules) continue;
      if (!mayHave(by, queue, *it)) break;
      from = &queue;
      best = it;
    }
  }
  if (from == nullptr) return nullptr;
  Block* const block = best->block;
  from->blocks.erase(best);
  const MutexLock lock(from->home->mutex());
  from->home->reissue(*block, request);
  return block;
}

}  // namespace cistern
