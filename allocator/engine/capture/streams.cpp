#include "allocator/engine/capture/streams.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace cistern {
namespace {

constexpr std::uint32_t kNoHeap = UINT32_MAX;  // a generation that no epoch has

}  // namespace

std::uint32_t nextRecording() {
  static std::atomic<std::uint32_t> next{1};
  const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number != 0 && number != Request::kLent ? number : nextRecording();
}

// ---- Parts -------------------------------------------------------------------------------------

void RecordedStreams::begin(Stream origin, std::uint64_t id) {
  parts_.push_back({id, number_, CaptureOrder(device_)});
  streams_.push_back({origin, &parts_.front()});
}

// A capture that an earlier call has broken has no id any more; its streams are known.
bool RecordedStreams::records(Stream stream, const CaptureInfo& info) {
  if (parts_.empty() || info.status == CaptureStatus::kNone) return false;
  const Seen* const of = seen(stream);
  if (info.status == CaptureStatus::kInvalidated) return of != nullptr;
  if (info.id != parts_.front().id) return of != nullptr && of->included;
  if (of == nullptr) streams_.push_back({stream, &parts_.front()});
  return true;
}

void RecordedStreams::beginPart(Seen& of, std::uint64_t id) {
  const auto known = std::ranges::find(parts_, id, &Part::id);
  Part& part = known != parts_.end()
                   ? *known
                   : parts_.emplace_back(Part{id, nextRecording(), CaptureOrder(device_)});
  of.part = &part;
}

// ---- Marks -------------------------------------------------------------------------------------

// A part that no request has told of yet is as good as none.
bool RecordedStreams::frontierOf(Stream stream, Nodes& nodes) {
  const auto present = [&] {
    const Result<CaptureInfo> info = device_.captureFrontier(stream, nodes);
    if (!info.ok() || !records(stream, info.value())) return false;
    const Part* const part = seen(stream)->part;
    return part != nullptr && part->id == info.value().id;
  };
  return known_.ask(stream, present, [](const SharedStreamEnd&) { return false; });
}

bool RecordedStreams::reachOf(Stream stream, Reach& reach) {
  Nodes frontier;
  if (!frontierOf(stream, frontier)) return false;
  Part& part = *seen(stream)->part;
  reach.part = &part;
  return part.order.reachOf(frontier, reach.lanes);
}

bool RecordedStreams::mark(Stream stream) noexcept {
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
void RecordedStreams::noteFree(Seen& of) noexcept {
  if (++of.unmarked < of.share) return;
  if (pool_.heapCount() == 1) {
    of.share += kFreesOfAMark;
  } else if (mark(of.stream)) {
    of.share = std::min(2 * of.share, kMostOfAMark);
  }
}

void RecordedStreams::markForOthers(Seen& of) noexcept {
  of.share = kFreesOfAMark;
  if (of.unmarked > 0) (void)mark(of.stream);
}

Epochs RecordedStreams::followed(Heap& heap, const Reach& reach) {
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

}  // namespace cistern
