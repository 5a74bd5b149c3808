#include "allocator/engine/recording/recording.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace cistern {

// ---- Marks -------------------------------------------------------------------------------------

Recording::Marks& Recording::marksOf(Heap& heap) {
  Marks& of = marks_[&heap];
  if (of.generation != heap.generation) of = {heap.generation, 0, 0, kFreesOfAMark, {}};
  return of;
}

// While no other stream has a heap in the pool there is nobody to take it. Where the host has no
// memory for the heap's marks, what is freed has an epoch before those of all marks to come: nobody
// takes it either.
bool Recording::noteFree(Heap& heap) noexcept {
  try {
    if (marksOf(heap).unmarked == 0) (void)heap.endEpoch();
    Marks& of = marksOf(heap);
    if (++of.unmarked < of.share) return false;
    if (pool_.heapCount() > 1) return true;
    of.share += kFreesOfAMark;
  } catch (const std::bad_alloc&) {
  }
  return false;
}

void Recording::mark(Heap& heap, const Frontier& frontier) {
  Marks& of = marksOf(heap);
  if (of.unmarked == 0) return;
  const std::size_t first = nodes_.size();
  nodes_.insert(nodes_.end(), frontier.nodes.begin(), frontier.nodes.end());
  of.marks.push_back({heap.epoch, first, frontier.nodes.size()});
  of.capture = frontier.capture;
  of.unmarked = 0;
  of.share = std::min(2 * of.share, kMostOfAMark);
}

bool Recording::unmarked(Heap& heap) const {
  const auto it = marks_.find(&heap);
  return it != marks_.end() && it->second.unmarked > 0;
}

bool Recording::follows(const Reach& reach, const Mark& mark) const {
  const CaptureOrder& order = orders_.at(reach.capture);
  const auto from = nodes_.begin() + std::ptrdiff_t(mark.first);
  return std::all_of(from, from + std::ptrdiff_t(mark.count),
                     [&](GraphNode node) { return order.follows(reach.lanes, node); });
}

Epochs Recording::followed(Heap& heap, const Reach& reach) {
  const auto it = marks_.find(&heap);
  if (it == marks_.end() || it->second.generation != heap.generation) return Epochs::none();
  if (it->second.capture != reach.capture) return Epochs::none();
  it->second.share = kFreesOfAMark;
  const std::vector<Mark>& marks = it->second.marks;
  const auto end =
      std::partition_point(marks.begin(), marks.end(),
                           [&](const Mark& mark) CISTERN_NO_TSA { return follows(reach, mark); });
  if (end == marks.begin()) return Epochs::none();
  return {marks.front().epoch, std::prev(end)->epoch};
}

// ---- Deferred blocks ---------------------------------------------------------------------------

Recording::Queue& Recording::queueOf(Heap& home, const StreamUses& users) {
  for (Queue& queue : queues_) {
    if (queue.home == &home && queue.users == users) return queue;
  }
  queues_.push_back({&home, users, {}, 0});
  return queues_.back();
}

void Recording::defer(PendingFrees::Retired retired, const StreamUses& users) noexcept {
  try {
    deferFor(retired, users);
  } catch (const std::bad_alloc&) {
    unknown_.push(*retired.block);
  }
}

// What one stream alone has used will be used there again, as a rule: its frontier is asked for
// when another stream looks, or every few blocks. One that comes later is as safe, as with marks.
void Recording::deferFor(PendingFrees::Retired retired, const StreamUses& users) {
  Deferred deferred{retired, {}, {}};
  StreamUses recorded;
  const bool later = users.size() == 1 && seen(users.front()) != nullptr;
  for (const Stream user : users) {
    Frontier frontier;
    if (later || frontierOf(user, frontier)) {
      if (!later) deferred.waitsFor(std::move(frontier));
      recorded.note(user);
    } else {
      deferred.others.note(user);
    }
  }
  // Who waits for a stream outside waits until the capture is over: in a queue of their own.
  for (const Stream user : deferred.others) recorded.note(user);
  Queue& queue = queueOf(*retired.heap, recorded);
  queue.blocks.push_back(std::move(deferred));
  if (later && ++queue.unmarked >= kFreesOfAMark) markQueue(queue);
}

void Recording::keepApart(PendingFrees::Retired retired, const StreamUses& users) noexcept {
  try {
    Deferred deferred{retired, {}, {}};
    Frontier frontier;
    for (const Stream user : users) {
      if (!frontierOf(user, frontier)) deferred.others.note(user);
    }
    apart_.push_back(std::move(deferred));
  } catch (const std::bad_alloc&) {
    unknown_.push(*retired.block);
  }
}

// Where several parts have used a block, nobody follows all of them.
void Recording::Deferred::waitsFor(Frontier&& point) {
  capture = points.empty() || capture == point.capture ? point.capture : 0;
  points.push_back(std::move(point.nodes));
}

void Recording::markQueues() {
  for (Queue& queue : queues_) markQueue(queue);
}

// Where the stream does not tell what it has reached, or the host is short of memory, blocks stay
// unmarked.
void Recording::markQueue(Queue& queue) noexcept {
  if (queue.unmarked == 0) return;
  try {
    Frontier frontier;
    if (!frontierOf(queue.users.front(), frontier)) return;
    for (; queue.unmarked > 0; --queue.unmarked) {
      queue.blocks[queue.blocks.size() - queue.unmarked].waitsFor(Frontier(frontier));
    }
  } catch (const std::bad_alloc&) {
  }
}

bool Recording::follows(const Reach& reach, const Deferred& deferred) const {
  if (!deferred.others.empty() || deferred.points.empty()) return false;
  if (deferred.capture != reach.capture) return false;
  return std::all_of(deferred.points.begin(), deferred.points.end(),
                     [&](const Nodes& point) CISTERN_NO_TSA { return follows(reach, point); });
}

RetiredBlocks Recording::takeFollowed(const Heap& heap, const Reach& reach) noexcept {
  RetiredBlocks blocks;
  for (Queue& queue : queues_) {
    if (queue.home != &heap) continue;
    markQueue(queue);
    while (!queue.blocks.empty() && follows(reach, queue.blocks.front())) {
      blocks.push(*queue.blocks.front().retired.block);
      queue.blocks.pop_front();
    }
  }
  return blocks;
}

// It is handed out whole, so it must not be much larger.
bool Recording::fits(const Deferred& deferred, std::uint32_t grains, SizeKind kind) {
  const Block& block = *deferred.retired.block;
  return segmentOf(block).kind == kind && block.grains >= grains &&
         block.grains <= grains + grains / 8;
}

bool Recording::mayServe(const Heap& heap, std::uint32_t grains, SizeKind kind) const {
  return std::any_of(queues_.begin(), queues_.end(), [&](const Queue& queue) {
    if (queue.home == &heap && !queue.blocks.empty()) return true;
    const auto end =
        queue.blocks.begin() + std::ptrdiff_t(std::min(queue.blocks.size(), kLookedAt));
    return std::any_of(queue.blocks.begin(), end,
                       [&](const Deferred& one) { return fits(one, grains, kind); });
  });
}

// Few are looked at in each queue.
template <class MayHave>
PendingFrees::Retired Recording::takeBest(std::uint32_t grains, SizeKind kind, MayHave may_have) {
  Queue* best_queue = nullptr;
  std::size_t best = 0;
  for (Queue& queue : queues_) {
    for (std::size_t i = 0; i < std::min(queue.blocks.size(), kLookedAt); ++i) {
      if (!may_have(queue, queue.blocks[i])) break;
      if (!fits(queue.blocks[i], grains, kind)) continue;
      const Block& block = *queue.blocks[i].retired.block;
      if (best_queue && block.grains >= best_queue->blocks[best].retired.block->grains) continue;
      best_queue = &queue;
      best = i;
    }
  }
  if (best_queue == nullptr) return {nullptr, nullptr};
  const PendingFrees::Retired taken = best_queue->blocks[best].retired;
  if (best + best_queue->unmarked >= best_queue->blocks.size()) --best_queue->unmarked;
  best_queue->blocks.erase(best_queue->blocks.begin() + std::ptrdiff_t(best));
  return taken;
}

PendingFrees::Retired Recording::takeFor(std::uint32_t grains, SizeKind kind, const Reach& reach) {
  markQueues();
  return takeBest(grains, kind, [&](const Queue&, const Deferred& deferred) CISTERN_NO_TSA {
    return follows(reach, deferred);
  });
}

PendingFrees::Retired Recording::takeOwn(std::uint32_t grains, SizeKind kind, Stream stream) {
  return takeBest(grains, kind, [&](const Queue& queue, const Deferred& deferred) {
    return queue.users.size() == 1 && queue.users.front() == stream && deferred.others.empty();
  });
}

void Recording::finish() noexcept {
  over_ = true;
  marks_.clear();
  nodes_.clear();
  orders_.clear();
}

bool Recording::takeDeferred(Deferred& deferred) noexcept {
  if (Block* const block = unknown_.pop()) {
    deferred = {};
    deferred.retired = {segmentOf(*block).heap.load(std::memory_order_relaxed), block};
    deferred.unknown = true;
    return true;
  }
  while (!queues_.empty() && queues_.front().blocks.empty()) queues_.pop_front();
  if (!queues_.empty()) {
    deferred = std::move(queues_.front().blocks.front());
    queues_.front().blocks.pop_front();
    return true;
  }
  if (apart_.empty()) return false;
  deferred = std::move(apart_.back());
  apart_.pop_back();
  return true;
}

}  // namespace cistern
