// Which streams a capture records, as which of its parts, and what becomes of memory when a stream
// begins another. See recording.hpp.
#include <algorithm>

#include "allocator/engine/recording/recording.hpp"

namespace cistern {
namespace {

std::uint32_t nextRecording() {
  static std::atomic<std::uint32_t> next{1};
  const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number != 0 && number != Request::kLent ? number : nextRecording();
}

}  // namespace

Recording::Recording(Device& device, KnownStreams& streams, Pool& pool)
    : device_(device),
      known_(streams),
      pool_(pool),
      token_(pool.token()),
      number_(nextRecording()) {}

void Recording::attach(const std::atomic<std::uint64_t>& tick, bool across_streams) {
  const MutexLock lock(mutex_);
  tick_ = &tick;
  across_streams_ = across_streams;
}

void Recording::begin(Stream origin, std::uint64_t id) {
  const MutexLock lock(mutex_);
  parts_.push_back({id, number_, CaptureOrder(device_)});
  streams_.push_back({origin, &parts_.front()});
}

void Recording::include(Stream stream) {
  const MutexLock lock(mutex_);
  if (Seen* const of = seen(stream)) {
    of->included = true;
  } else {
    streams_.push_back({stream, nullptr, true});
  }
}

Recording::Seen* Recording::seen(Stream stream) {
  const auto it = std::ranges::find(streams_, stream, &Seen::stream);
  return it != streams_.end() ? &*it : nullptr;
}

// A device that says no is asked once more; then what was seen before holds. What the graph uses
// must not come from elsewhere: nothing would keep it in place.
bool Recording::covers(Stream stream) {
  Result<CaptureInfo> info = device_.captureInfo(stream);
  if (!info && info.error().kind != ErrorKind::kInvalidHandle) info = device_.captureInfo(stream);
  if (!info && info.error().kind == ErrorKind::kInvalidHandle) return false;
  const CaptureInfo now = info ? info.value() : CaptureInfo{CaptureStatus::kInvalidated, 0};
  const MutexLock lock(mutex_);
  if (!records(stream, now)) return false;
  Seen& of = *seen(stream);
  const bool told = now.status == CaptureStatus::kActive;
  if (told && (of.part == nullptr || of.part->id != now.id)) beginPart(of, now.id);
  return true;
}

// A capture that an earlier call has broken has no id any more; its streams are known.
bool Recording::records(Stream stream, const CaptureInfo& info) {
  if (over_ || parts_.empty() || info.status == CaptureStatus::kNone) return false;
  const Seen* const of = seen(stream);
  if (info.status == CaptureStatus::kInvalidated) return of != nullptr;
  if (info.id != parts_.front().id) return of != nullptr && of->included;
  if (of == nullptr) streams_.push_back({stream, &parts_.front()});
  return true;
}

std::uint32_t Recording::numberOf(Stream stream) {
  const MutexLock lock(mutex_);
  const Seen* const of = seen(stream);
  return of && of->part ? of->part->number : number_;
}

void Recording::beginPart(Seen& of, std::uint64_t id) {
  const auto known = std::ranges::find(parts_, id, &Part::id);
  Part& part = known != parts_.end()
                   ? *known
                   : parts_.emplace_back(Part{id, nextRecording(), CaptureOrder(device_)});
  if (of.part != nullptr) keepApart(of);
  of.marks.clear();
  of.unmarked = 0;
  of.part = &part;
}

// What the stream has used or freed until now is for the part that it does not record any more.
void Recording::keepApart(const Seen& of) {
  if (Heap* const heap = pool_.find(of.stream)) {
    const MutexLock lock(heap->mutex());
    for (Block* block : incompleteBlocks(*heap)) {
      heap->setAside(*block);
      left_.free.push(*block);
    }
  }
  for (Queue& queue : queues_) {
    if (!queue.users.contains(of.stream)) continue;
    for (const Waiting& waiting : queue.blocks) left_.free.push(*waiting.block);
    queue.blocks.clear();
  }
}

// A part that no request has told of yet is as good as none.
bool Recording::frontierOf(Stream stream, Nodes& nodes) {
  const auto present = [&] {
    mutex_.assertHeld();
    const Result<CaptureInfo> info = device_.captureFrontier(stream, nodes);
    if (!info.ok() || !records(stream, info.value())) return false;
    const Part* const part = seen(stream)->part;
    return part != nullptr && part->id == info.value().id;
  };
  return known_.ask(stream, present, [](const SharedStreamEnd&) { return false; });
}

bool Recording::reachOf(Stream stream, Reach& reach) {
  Nodes frontier;
  if (!frontierOf(stream, frontier)) return false;
  Part& part = *seen(stream)->part;
  reach.part = &part;
  return part.order.reachOf(frontier, reach.lanes);
}

}  // namespace cistern
