#include "allocator/engine/recording/recording.hpp"

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

// The best free block of the owner's that was freed in one of the epochs.
Block* bestFree(Heap& owner, const Request& request, Epochs epochs)
    CISTERN_REQUIRES(owner.mutex()) {
  Layout& layout = owner.layout(request.kind);
  layout.listLeftOut();
  return layout.freeBlocks().bestFitIf(request.granules, [&](const Block& b) {
    return epochs.contain(b.epoch) && layout.serves(b, request.granules);
  });
}

bool hasFree(Heap& owner, const Request& request) {
  const MutexLock lock(owner.mutex());
  return bestFree(owner, request, {}) != nullptr;
}

}  // namespace

// ---- Marks -------------------------------------------------------------------------------------

// All that was freed on the stream by now. False where the stream does not tell what it has
// reached, or the host is short of memory: a mark that comes later is as safe, only less often
// followed.
bool Recording::mark(Stream stream) noexcept {
  try {
    Nodes nodes;
    if (!frontierOf(stream, nodes)) return false;
    Seen& of = *seen(stream);
    of.marks.push_back({{0, kNoHeap}, std::move(nodes)});
    of.unmarked = 0;
    if (Heap* const heap = pool_.find(stream)) {
      const MutexLock lock(heap->mutex());
      of.marks.back().ended = heap->endedEpoch();
    }
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// To ask for a frontier at every free would be most of what a free costs. While no other stream has
// a heap in the pool there is nobody to take the memory.
void Recording::noteFree(Seen& of) noexcept {
  if (++of.unmarked < of.share || !across_streams_) return;
  if (pool_.heapCount() == 1) {
    of.share += kFreesOfAMark;
  } else if (mark(of.stream)) {
    of.share = std::min(2 * of.share, kMostOfAMark);
  }
}

void Recording::markForOthers(Seen& of) noexcept {
  of.share = kFreesOfAMark;
  if (of.unmarked > 0) (void)mark(of.stream);
}

void Recording::markForOthers(const Queue& queue) noexcept {
  if (queue.blocks.empty()) return;
  const Point& last = queue.blocks.back().points.front();
  if (last.mark == last.of->marks.size()) markForOthers(*last.of);
}

bool Recording::follows(const Reach& reach, const Mark& mark) {
  return std::ranges::all_of(
      mark.nodes, [&](GraphNode node) { return reach.part->order.follows(reach.lanes, node); });
}

bool Recording::follows(const Reach& reach, const Waiting& waiting) {
  return std::ranges::all_of(waiting.points, [&](const Point& point) {
    const std::vector<Mark>& marks = point.of->marks;
    return point.of->part == reach.part && point.mark < marks.size() &&
           follows(reach, marks[point.mark]);
  });
}

// Epochs of free blocks that may be taken with that reach, apart from those that are complete.
Epochs Recording::followed(Heap& heap, const Reach& reach) {
  const Seen* const of = seen(heap.stream());
  if (of == nullptr || of->part != reach.part) return Epochs::none();
  const std::uint32_t generation = heap.completion().now().generation;
  const auto first = std::ranges::find(of->marks, generation,
                                       [](const Mark& mark) { return mark.ended.generation; });
  const auto end = std::partition_point(first, of->marks.end(),
                                        [&](const Mark& mark) { return follows(reach, mark); });
  if (end == first) return Epochs::none();
  return {first->ended.epoch, std::prev(end)->ended.epoch};
}

// ---- Freeing -----------------------------------------------------------------------------------

Recording::Freed Recording::free(Heap& heap, const HeapSegment& segment, Address address,
                                 const void* caller) noexcept {
  const MutexLock lock(mutex_);
  if (over_) return {Freed::How::kOver, nullptr, {}};
  Freed freed;
  Seen* of = nullptr;
  bool ours = false, present = false;
  {
    const MutexLock heap_lock(heap.mutex());
    Block* const block = freed.block = heap.find(segment, address);
    if (block == nullptr) return {Freed::How::kNotHeld, nullptr, {}};
    heap.frees().note(address, block->granules, caller, threadNumber());
    of = seen(block->use.stream);
    ours = isOurs(*block);
    present = ours && of && of->part && of->part->number == block->epoch;
    if (present && block->use.uses == nullptr && of->stream == heap.stream()) {
      heap.release(*block, tick());
    } else {
      freed.users = heap.setPending(*block);
      freed.users.add(ours ? block->use.stream : heap.stream());
    }
  }
  if (!ours) freed.how = Freed::How::kFromBefore;
  if (ours && !freed.users.empty()) defer(*freed.block, freed.users, present);
  if (present && freed.users.size() <= 1) noteFree(*of);
  return freed;
}

bool Recording::isOurs(const Block& block) const {
  return std::ranges::find(parts_, block.epoch, &Part::number) != parts_.end();
}

// `present`: its stream still records the part in which it was allocated. What one stream alone has
// used will be used there again, as a rule: it waits for the next mark.
void Recording::defer(Block& block, const StreamUses& users, bool present) noexcept try {
  const bool alone = present && users.size() == 1;
  Waiting waiting{&block, {}};
  StreamUses outside;
  for (const Stream user : users) {
    if (alone || mark(user)) {
      Seen* const of = seen(user);
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

Recording::Queue& Recording::queueOf(const Block& block, const StreamUses& users) {
  Heap* const home = segmentOf(block).heap.load(std::memory_order_relaxed);
  for (Queue& queue : queues_) {
    if (queue.home == home && queue.users == users) return queue;
  }
  return queues_.emplace_back(Queue{home, users, {}});
}

Recording::Left Recording::finish() noexcept {
  over_ = true;
  for (const Queue& queue : queues_) {
    for (const Waiting& waiting : queue.blocks) left_.free.push(*waiting.block);
  }
  queues_.clear();
  streams_.clear();
  parts_.clear();
  return std::exchange(left_, {});
}

// ---- Taking ------------------------------------------------------------------------------------

Block* Recording::take(Heap& heap, const Request& request) {
  const MutexLock lock(mutex_);
  if (over_ || !across_streams_) return nullptr;
  if (Block* block = takeOwn(request)) return block;
  Reach reach;
  if (!mayFind(heap, request) || !reachOf(request.stream, reach)) return nullptr;
  takeBack(heap, reach);
  {
    const MutexLock heap_lock(heap.mutex());
    if (Block* block = heap.allocate(request)) return block;
  }
  if (Block* block = takeWaiting(request, reach)) return block;
  return takeFree(heap, request, reach);
}

// The best of the waiting blocks; few are looked at in each queue.
template <class MayHave>
Block* Recording::takeBest(const Request& request, MayHave may_have) {
  Queue* from = nullptr;
  std::deque<Waiting>::iterator best;
  for (Queue& queue : queues_) {
    const auto end =
        queue.blocks.begin() + std::ptrdiff_t(std::min(queue.blocks.size(), kLookedAt));
    for (auto it = queue.blocks.begin(); it != end && may_have(queue, *it); ++it) {
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

// What no stream but this one has used is ordered by the stream itself.
Block* Recording::takeOwn(const Request& request) {
  return takeBest(request, [&](const Queue& queue, const Waiting&) {
    return queue.users.size() == 1 && queue.users.front() == request.stream;
  });
}

Block* Recording::takeWaiting(const Request& request, const Reach& reach) {
  for (const Queue& queue : queues_) markForOthers(queue);
  return takeBest(request, [&](const Queue&, const Waiting& one) { return follows(reach, one); });
}

// Whether anything waits that could serve the request, or is the heap's; or other heaps have it.
bool Recording::mayFind(const Heap& heap, const Request& request) {
  for (const Queue& queue : queues_) {
    if (queue.home == &heap && !queue.blocks.empty()) return true;
    const auto first = queue.blocks.begin();
    const auto end = first + std::ptrdiff_t(std::min(queue.blocks.size(), kLookedAt));
    if (std::any_of(first, end, [&](const Waiting& one) { return fits(*one.block, request); }))
      return true;
  }
  return std::ranges::any_of(
      pool_.heaps(), [&](Heap* owner) { return owner != &heap && hasFree(*owner, request); });
}

// Blocks of this heap that streams used which its own now follows are its free memory again.
void Recording::takeBack(Heap& heap, const Reach& reach) noexcept {
  for (Queue& queue : queues_) {
    if (queue.home != &heap) continue;
    markForOthers(queue);
    while (!queue.blocks.empty() && follows(reach, queue.blocks.front())) {
      {
        const MutexLock lock(heap.mutex());
        heap.release(*queue.blocks.front().block, tick());
      }
      queue.blocks.pop_front();
      if (Seen* const of = seen(heap.stream())) ++of->unmarked;
    }
  }
}

// Free memory of the capture's other streams: as a loan, until it is freed.
Block* Recording::takeFree(const Heap& heap, const Request& request, const Reach& reach) {
  for (Heap* owner : pool_.heaps()) {
    Seen* const of = seen(owner->stream());
    if (owner == &heap || of == nullptr || !hasFree(*owner, request)) continue;
    markForOthers(*of);
    const MutexLock lock(owner->mutex());
    Block* const free = bestFree(*owner, request, followed(*owner, reach));
    if (free != nullptr) return owner->allocateFrom(*free, request);
  }
  return nullptr;
}

}  // namespace cistern
