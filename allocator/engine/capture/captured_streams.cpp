#include "allocator/engine/capture/captured_streams.hpp"

#include <new>
#include <utility>

namespace cistern {

// ---- Which it records --------------------------------------------------------------------------

// A stream that has joined is met here first. A capture that an earlier call has broken has no id
// any more; its streams are known.
CapturedStreams::Seen* CapturedStreams::captured(Stream stream, const CaptureInfo& info) {
  Seen* const of = seen(stream);
  if (info.status == CaptureStatus::kNone || parts_.empty()) return nullptr;
  if (info.status == CaptureStatus::kInvalidated) return of;
  if (info.id != parts_.front().id) return of && of->included ? of : nullptr;
  return of ? of : &streams_.emplace_back(Seen{stream, false, &parts_.front()});
}

void CapturedStreams::beginPart(Seen& of, std::uint64_t id) {
  const auto known = std::ranges::find(parts_, id, &Part::id);
  of.part = known != parts_.end()
                ? &*known
                : &parts_.emplace_back(Part{id, nextCaptureNumber(), CaptureOrder(device_)});
}

// ---- How far they are --------------------------------------------------------------------------

// A part that no request has told of yet is as good as none.
CapturedStreams::Seen* CapturedStreams::frontierOf(Stream stream, Nodes& nodes) {
  const KnownStreams::Look at = known_.look(stream);
  if (at.forgotten) return nullptr;
  const Result<CaptureInfo> info = device_.captureFrontier(stream, nodes);
  Seen* const of = info.ok() ? captured(stream, info.value()) : nullptr;
  return of && of->part && of->part->id == info.value().id ? of : nullptr;
}

bool CapturedStreams::knowsPast() {
  if (!told_) {
    Nodes frontier;
    told_ = frontierOf(by_->stream, frontier) && by_->part->order.extend(by_->past, frontier);
  }
  return *told_;
}

bool CapturedStreams::mark(Stream stream) noexcept try {
  Nodes nodes;
  Seen* const of = frontierOf(stream, nodes);
  if (of == nullptr || !addFrontiers(*of, nodes)) return false;
  of->marks.push_back({{}, std::move(nodes)});
  of->unmarked = 0;
  for (const bool overflow : {false, true}) {
    Heap* const heap = pool_.heapWith(stream, overflow);
    if (heap == nullptr) continue;
    const MutexLock lock(heap->mutex());
    of->marks.back().ended[overflow] = heap->endedEpoch();
  }
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

CapturedStreams::Point CapturedStreams::cover(Stream stream) noexcept try {
  if (affordsMark()) {
    Seen* const of = mark(stream) ? seen(stream) : nullptr;
    return {of, of ? of->marks.size() - 1 : 0};
  }
  Nodes nodes;
  Seen* const of = frontierOf(stream, nodes);
  if (of == nullptr) return {};
  ++of->unmarked;
  return {of, of->marks.size()};
} catch (const std::bad_alloc&) {
  return {};
}

// Adds what the other streams of the part have captured by now. Any of them may have used what was
// freed, as Note [Unrecorded uses] in core/progress.hpp says. A stream that is destroyed, or
// that forbids the question (the legacy stream beside a capture), records nothing.
bool CapturedStreams::addFrontiers(const Seen& of, Nodes& nodes) {
  Nodes own;
  for (const Stream stream : known_.all()) {
    const KnownStreams::Look at = known_.look(stream);
    if (at.forgotten || stream == of.stream) continue;
    --calls_left_;
    const Result<CaptureInfo> info = device_.captureFrontier(stream, own);
    if (!info) {
      const ErrorKind kind = info.error().kind;
      if (kind != ErrorKind::kInvalidHandle && kind != ErrorKind::kCaptureForbidden) return false;
    } else if (info.value().status == CaptureStatus::kActive && info.value().id == of.part->id) {
      nodes.insert(nodes.end(), own.begin(), own.end());
    }
  }
  std::ranges::sort(nodes, {}, &GraphNode::raw);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return true;
}

// A frontier asked for at every free would be most of what a free costs. While no other stream has
// a heap in the pool, nobody can take the memory.
void CapturedStreams::noteFree(Seen& of) noexcept {
  if (++of.unmarked < of.share) return;
  if (pool_.heapAt(1) == nullptr) {
    of.share += kFreesOfAMark;
  } else if (affordsMark() && mark(of.stream)) {
    of.share = std::min(2 * of.share, kMostOfAMark);
  }
}

// Frees that are not marked yet are marked now. The next mark is due soon again after that.
std::size_t CapturedStreams::followed(Seen& of) noexcept try {
  if (&of == by_) return SIZE_MAX;
  if (std::exchange(of.asked, request_) == request_) return of.followed;
  of.share = kFreesOfAMark;
  of.followed = 0;
  if (of.unmarked > 0 && affordsMark()) (void)mark(of.stream);
  if (of.marks.empty() || of.part != by_->part || !knowsPast()) return 0;
  const auto follows = [this](GraphNode node) { return by_->past.nodes.contains(node); };
  const auto end = std::ranges::partition_point(
      of.marks, [&](const Mark& mark) { return std::ranges::all_of(mark.nodes, follows); });
  return of.followed = std::size_t(end - of.marks.begin());
} catch (const std::bad_alloc&) {
  return 0;
}

Epochs CapturedStreams::epochsFollowed(const Seen& of, const Heap& heap) {
  const auto endedOf = [&](const Mark& mark) { return mark.ended[heap.overflow()]; };
  const auto end = of.marks.begin() + std::ptrdiff_t(of.followed);
  const auto first =
      std::find_if(of.marks.begin(), end, [&](const Mark& mark) { return endedOf(mark) != 0; });
  if (first == end) return Epochs::none();
  return {endedOf(*first), endedOf(*std::prev(end))};
}

}  // namespace cistern
