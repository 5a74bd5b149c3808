#include "allocator/engine/capture/waiting.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace cistern {
namespace {

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
      RecordedStreams::Seen* const of = streams_.seen(user);
      waiting.points.push_back({of, of->marks.size() - (alone ? 0 : 1)});
    } else {
      outside.note(user);
    }
  }
  if (!outside.empty()) {
    left_.outside.push_back({&block, std::move(outside)});
  } else if (present) {
    queueOf(block, users).blocks.push_back(std::move(waiting));
  } else {
    left_.free.push(block);
  }
} catch (const std::bad_alloc&) {
  left_.unknown.push(block);
}

WaitingFrees::Queue& WaitingFrees::queueOf(const Block& block, const StreamUses& users) {
  Heap* const home = segmentOf(block).heap.load(std::memory_order_relaxed);
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

void WaitingFrees::markForOthers(const Queue& queue) noexcept {
  if (queue.blocks.empty()) return;
  const RecordedStreams::Point& last = queue.blocks.back().points.front();
  if (last.mark == last.of->marks.size()) streams_.markForOthers(*last.of);
}

bool WaitingFrees::mayServe(const Heap& heap, const Request& request) const {
  return std::ranges::any_of(queues_, [&](const Queue& queue) {
    if (queue.home == &heap && !queue.blocks.empty()) return true;
    return std::any_of(queue.blocks.begin(), endOfLook(queue),
                       [&](const Waiting& one) { return fits(*one.block, request); });
  });
}

Block* WaitingFrees::take(const Request& request, const Reach* reach) {
  const auto may_have = [&](const Queue& queue, const Waiting& one) {
    if (reach != nullptr) return follows(*reach, one);
    return queue.users.size() == 1 && queue.users.front() == request.stream;
  };
  Queue* from = nullptr;
  std::deque<Waiting>::const_iterator best;
  for (Queue& queue : queues_) {
    if (reach != nullptr) markForOthers(queue);
    const auto end = endOfLook(queue);
    for (auto it = queue.blocks.cbegin(); it != end && may_have(queue, *it); ++it) {
      if (!fits(*it->block, request)) continue;
      if (from != nullptr && it->block->granules >= best->block->granules) continue;
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

void WaitingFrees::putBack(Heap& heap, const Reach& reach, std::uint64_t tick) noexcept {
  for (Queue& queue : queues_) {
    if (queue.home != &heap) continue;
    markForOthers(queue);
    while (!queue.blocks.empty() && follows(reach, queue.blocks.front())) {
      {
        const MutexLock lock(heap.mutex());
        heap.release(*queue.blocks.front().block, tick);
      }
      queue.blocks.pop_front();
      if (RecordedStreams::Seen* const of = streams_.seen(heap.stream())) ++of->unmarked;
    }
  }
}

}  // namespace cistern
