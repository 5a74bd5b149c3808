#include "allocator/engine/capture/streams.hpp"

#include <new>
#include <utility>

namespace cistern {
namespace {

constexpr std::uint32_t kNoHeap = UINT32_MAX;  // a generation that no epoch has

}  // namespace

// ---- Which it records --------------------------------------------------------------------------

// A stream that has joined is met here first. A capture that an earlier call has broken has no id
// any more; its streams are known.
RecordedStreams::Seen* RecordedStreams::recorded(Stream stream, const CaptureInfo& info) {
  Seen* const of = seen(stream);
  if (info.status == CaptureStatus::kNone || parts_.empty()) return nullptr;
  if (info.status == CaptureStatus::kInvalidated) return of;
  if (info.id != parts_.front().id) return of && of->included ? of : nullptr;
  return of ? of : &streams_.emplace_back(Seen{stream, false, &parts_.front()});
}

void RecordedStreams::beginPart(Seen& of, std::uint64_t id) {
  const auto known = std::ranges::find(parts_, id, &Part::id);
  of.part = known != parts_.end()
                ? &*known
                : &parts_.emplace_back(Part{id, nextHolder(), CaptureOrder(device_)});
}

// ---- How far they are --------------------------------------------------------------------------

// A part that no request has told of yet is as good as none.
bool RecordedStreams::frontierOf(Stream stream, Nodes& nodes) {
  const auto present = [&] {
    const Result<CaptureInfo> info = device_.captureFrontier(stream, nodes);
    const Seen* const of = info.ok() ? recorded(stream, info.value()) : nullptr;
    return of && of->part && of->part->id == info.value().id;
  };
  return known_.ask(stream, present, [](const SharedStreamEnd&) { return false; });
}

bool RecordedStreams::knowsPast(Seen& of) {
  if (!of.told) {
    Nodes frontier;
    of.told = frontierOf(of.stream, frontier) && of.part->order.extend(of.past, frontier);
  }
  return *of.told;
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
  if (pool_.heapAt(1) == nullptr) {
    of.share += kFreesOfAMark;
  } else if (mark(of.stream)) {
    of.share = std::min(2 * of.share, kMostOfAMark);
  }
}

void RecordedStreams::markForOthers(Seen& of) noexcept {
  of.share = kFreesOfAMark;
  if (of.unmarked > 0) (void)mark(of.stream);
}

Epochs RecordedStreams::followed(Heap& heap, const Seen& by) {
  const Seen* const of = seen(heap.stream());
  if (of == nullptr || of->part != by.part) return Epochs::none();
  const std::uint32_t generation = heap.completion().now().generation;
  const auto first = std::ranges::find(of->marks, generation,
                                       [](const Mark& mark) { return mark.ended.generation; });
  const auto end = std::partition_point(first, of->marks.end(),
                                        [&](const Mark& mark) { return follows(by, mark); });
  if (end == first) return Epochs::none();
  return {first->ended.epoch, std::prev(end)->ended.epoch};
}

}  // namespace cistern
