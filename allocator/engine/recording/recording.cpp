#include "allocator/engine/recording/recording.hpp"

#include <algorithm>
#include <iterator>

namespace cistern {
namespace {

std::uint32_t nextNumber() {
  static std::atomic<std::uint32_t> next{1};
  const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number != 0 ? number : nextNumber();
}

bool contains(const std::vector<Stream>& streams, Stream stream) {
  return std::find(streams.begin(), streams.end(), stream) != streams.end();
}

}  // namespace

Recording::Recording(Device& device, KnownStreams& streams, Pool& pool)
    : order(device),
      device_(device),
      known_(streams),
      pool_(pool),
      token_(pool.token()),
      number_(nextNumber()) {}

void Recording::begin(Stream origin, std::uint64_t id) {
  const MutexLock lock(mutex_);
  id_ = id;
  streams_.push_back(origin);
}

void Recording::include(Stream stream) {
  const MutexLock lock(mutex_);
  if (!contains(included_, stream)) included_.push_back(stream);
}

// A device that says no is asked once more; then what was seen before holds. What the graph uses
// must not come from elsewhere: nothing would keep it in place.
bool Recording::covers(Stream stream) {
  Result<CaptureInfo> info = device_.captureInfo(stream);
  if (!info && info.error().kind != ErrorKind::kInvalidHandle) info = device_.captureInfo(stream);
  if (!info && info.error().kind == ErrorKind::kInvalidHandle) return false;
  const MutexLock lock(mutex_);
  return records(stream, info ? info.value() : CaptureInfo{CaptureStatus::kInvalidated, 0});
}

// A capture that an earlier call has broken has no id any more; its streams are known.
bool Recording::records(Stream stream, const CaptureInfo& info) {
  if (over_ || info.status == CaptureStatus::kNone) return false;
  if (contains(included_, stream)) return true;
  if (info.status == CaptureStatus::kInvalidated) return contains(streams_, stream);
  if (info.id != id_) return false;
  if (!contains(streams_, stream)) streams_.push_back(stream);
  return true;
}

bool Recording::frontierOf(Stream stream, Nodes& frontier) CISTERN_NO_TSA {
  const auto present = [&]() CISTERN_NO_TSA {
    const Result<CaptureInfo> info = device_.captureFrontier(stream, frontier);
    return info.ok() && records(stream, info.value());
  };
  return known_.ask(stream, present, [](const SharedStreamEnd&) { return false; });
}

// ---- Marks -------------------------------------------------------------------------------------

Recording::Marks& Recording::marksOf(Heap& heap) {
  Marks& of = marks_[&heap];
  if (of.generation != heap.generation) of = {heap.generation, 0, {}};
  return of;
}

bool Recording::noteFree(Heap& heap) {
  if (marksOf(heap).unmarked == 0) (void)heap.endEpoch();
  return ++marksOf(heap).unmarked >= kFreesOfAMark;
}

void Recording::mark(Heap& heap, const Nodes& frontier) {
  Marks& of = marksOf(heap);
  if (of.unmarked == 0) return;
  of.unmarked = 0;
  of.marks.push_back({heap.epoch, nodes_.size(), frontier.size()});
  nodes_.insert(nodes_.end(), frontier.begin(), frontier.end());
}

bool Recording::unmarked(Heap& heap) const {
  const auto it = marks_.find(&heap);
  return it != marks_.end() && it->second.unmarked > 0;
}

bool Recording::follows(const Reach& reach, const Mark& mark) const {
  const auto from = nodes_.begin() + std::ptrdiff_t(mark.first);
  return std::all_of(from, from + std::ptrdiff_t(mark.count),
                     [&](GraphNode node) CISTERN_NO_TSA { return order.follows(reach, node); });
}

Epochs Recording::followed(Heap& heap, const Reach& reach) {
  const auto it = marks_.find(&heap);
  if (it == marks_.end() || it->second.generation != heap.generation) return Epochs::none();
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
  queues_.push_back({&home, users, {}});
  return queues_.back();
}

void Recording::defer(PendingFrees::Retired retired, const StreamUses& users) {
  Deferred deferred{retired, {}, {}};
  StreamUses recorded;
  for (const Stream user : users) {
    Nodes frontier;
    if (frontierOf(user, frontier)) {
      deferred.points.push_back(std::move(frontier));
      recorded.push_back(user);
    } else {
      deferred.others.push_back(user);
    }
  }
  // Who waits for a stream outside waits until the capture is over: in a queue of their own.
  for (const Stream user : deferred.others) recorded.push_back(user);
  queueOf(*retired.heap, recorded).blocks.push_back(std::move(deferred));
  ++deferred_;
}

bool Recording::follows(const Reach& reach, const Deferred& deferred) const {
  if (!deferred.others.empty()) return false;
  return std::all_of(
      deferred.points.begin(), deferred.points.end(), [&](const Nodes& point) CISTERN_NO_TSA {
        return std::all_of(point.begin(), point.end(), [&](GraphNode node) CISTERN_NO_TSA {
          return order.follows(reach, node);
        });
      });
}

std::vector<Block*> Recording::takeFollowed(const Heap& heap, const Reach& reach) {
  std::vector<Block*> blocks;
  for (Queue& queue : queues_) {
    if (queue.home != &heap) continue;
    while (!queue.blocks.empty() && follows(reach, queue.blocks.front())) {
      blocks.push_back(queue.blocks.front().retired.block);
      queue.blocks.pop_front();
      --deferred_;
    }
  }
  return blocks;
}

// It is handed out whole, so it must not be much larger; few are looked at in each queue.
PendingFrees::Retired Recording::takeFor(std::uint32_t grains, SizeKind kind, const Reach& reach) {
  constexpr std::size_t kLookedAt = 64;
  const std::uint32_t most = grains + grains / 8;
  Queue* best_queue = nullptr;
  std::size_t best = 0;
  for (Queue& queue : queues_) {
    for (std::size_t i = 0; i < std::min(queue.blocks.size(), kLookedAt); ++i) {
      if (!follows(reach, queue.blocks[i])) break;
      const Block& block = *queue.blocks[i].retired.block;
      if (segmentOf(block).kind != kind || block.grains < grains || block.grains > most) continue;
      if (best_queue && block.grains >= best_queue->blocks[best].retired.block->grains) continue;
      best_queue = &queue;
      best = i;
    }
  }
  if (best_queue == nullptr) return {nullptr, nullptr};
  const PendingFrees::Retired taken = best_queue->blocks[best].retired;
  best_queue->blocks.erase(best_queue->blocks.begin() + std::ptrdiff_t(best));
  --deferred_;
  return taken;
}

std::vector<Recording::Deferred> Recording::finish() {
  over_ = true;
  std::vector<Deferred> all;
  for (Queue& queue : queues_) {
    std::move(queue.blocks.begin(), queue.blocks.end(), std::back_inserter(all));
  }
  queues_.clear();
  deferred_ = 0;
  marks_.clear();
  nodes_.clear();
  return all;
}

}  // namespace cistern
