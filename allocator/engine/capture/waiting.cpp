#include "allocator/engine/capture/waiting.hpp"

#include <algorithm>
#include <new>

namespace cistern {
namespace {

constexpr std::ptrdiff_t kLookedAt = 64;  // blocks of each queue, for one request

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
    const std::vector<Stream> all(users.begin(), users.end());
    queues_[{heapOf(block).number(), all}].push_back(std::move(waiting));
  } else {
    left_.free.push(block);
  }
} catch (const std::bad_alloc&) {
  left_.unknown.push(block);
}

void WaitingFrees::keepApart(Stream stream, Heap* heap) {
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

WaitingFrees::Left WaitingFrees::takeAll() noexcept {
  for (const auto& [of, queue] : queues_) {
    for (const Waiting& waiting : queue) left_.free.push(*waiting.block);
  }
  queues_.clear();
  return std::exchange(left_, {});
}

// ---- Blocks leave ------------------------------------------------------------------------------

Block* WaitingFrees::take(const Request& request) noexcept {
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

bool WaitingFrees::putBack(Heap& heap, Seen& by, std::uint64_t tick) noexcept {
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

}  // namespace cistern
