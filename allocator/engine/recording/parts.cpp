// Which streams a capture records, as which of its parts, and what becomes of memory when a stream
// begins another. See recording.hpp.
#include <algorithm>
#include <iterator>
#include <utility>

#include "allocator/engine/recording/recording.hpp"

namespace cistern {
namespace {

std::uint32_t nextRecording() {
  static std::atomic<std::uint32_t> next{1};
  const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number != 0 && number != Request::kLent ? number : nextRecording();
}

template <class T>
bool contains(const std::vector<T>& all, T one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

Recording::Recording(Device& device, KnownStreams& streams, Pool& pool)
    : device_(device),
      known_(streams),
      pool_(pool),
      token_(pool.token()),
      number_(nextRecording()) {}

void Recording::begin(Stream origin, std::uint64_t id) {
  const MutexLock lock(mutex_);
  id_ = id;
  streams_.push_back({origin, id, number_, false});
}

void Recording::include(Stream stream) {
  const MutexLock lock(mutex_);
  if (Seen* const of = seen(stream)) {
    of->included = true;
  } else {
    streams_.push_back({stream, 0, 0, true});
  }
}

const Recording::Seen* Recording::seen(Stream stream) const {
  const auto it = std::find_if(streams_.begin(), streams_.end(),
                               [&](const Seen& of) { return of.stream == stream; });
  return it != streams_.end() ? &*it : nullptr;
}

Recording::Seen* Recording::seen(Stream stream) CISTERN_NO_TSA {
  return const_cast<Seen*>(std::as_const(*this).seen(stream));
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
  if (now.status == CaptureStatus::kActive && of.capture != now.id) beginPart(of, now.id);
  return true;
}

// A capture that an earlier call has broken has no id any more; its streams are known.
bool Recording::records(Stream stream, const CaptureInfo& info) {
  if (over_ || info.status == CaptureStatus::kNone) return false;
  const Seen* const of = seen(stream);
  if (info.status == CaptureStatus::kInvalidated) return of != nullptr;
  if (info.id != id_) return of != nullptr && of->included;
  if (of == nullptr) streams_.push_back({stream, id_, number_, false});
  return true;
}

std::uint32_t Recording::numberOf(Stream stream) {
  const MutexLock lock(mutex_);
  const Seen* const of = seen(stream);
  return of && of->number != 0 ? of->number : number_;
}

// Streams of one part have one number.
void Recording::beginPart(Seen& of, std::uint64_t capture) {
  const auto same = std::find_if(streams_.begin(), streams_.end(),
                                 [&](const Seen& other) { return other.capture == capture; });
  const bool known = capture == id_ || same != streams_.end();
  bodies_.reserve(bodies_.size() + 1);
  if (of.capture != 0) keepApart(of.stream);
  of.number = capture == id_ ? number_ : known ? same->number : nextRecording();
  of.capture = capture;
  if (!known) bodies_.push_back(of.number);
}

// What the stream has used or freed until now is for the part that it does not record any more.
void Recording::keepApart(Stream stream) {
  const auto used = [&](const Queue& queue) { return queue.users.contains(stream); };
  std::size_t count = apart_.size();
  for (const Queue& queue : queues_) count += used(queue) ? queue.blocks.size() : 0;
  apart_.reserve(count);
  for (Heap* heap : pool_.heaps()) {
    if (heap->stream() != stream) continue;
    const MutexLock lock(heap->mutex());
    const std::vector<Block*> freed = heap->incomplete();
    apart_.reserve(count + freed.size());
    for (Block* block : freed) {
      heap->setAside(*block);
      apart_.push_back({{heap, block}, {}, {}, 0});
    }
    marks_.erase(heap);
  }
  for (Queue& queue : queues_) {
    if (!used(queue)) continue;
    std::move(queue.blocks.begin(), queue.blocks.end(), std::back_inserter(apart_));
    queue.blocks.clear();
    queue.unmarked = 0;
  }
}

Recording::Part Recording::partOf(const Block& block) const {
  if (block.epoch != number_ && !contains(bodies_, block.epoch)) return Part::kNone;
  const Seen* const of = seen(block.use.stream);
  return of && of->number == block.epoch ? Part::kPresent : Part::kPast;
}

// A part that no request has told of yet is as good as none.
bool Recording::frontierOf(Stream stream, Frontier& frontier) CISTERN_NO_TSA {
  const auto present = [&]() CISTERN_NO_TSA {
    const Result<CaptureInfo> info = device_.captureFrontier(stream, frontier.nodes);
    if (!info.ok() || !records(stream, info.value())) return false;
    frontier.capture = info.value().id;
    return frontier.capture == seen(stream)->capture;
  };
  return known_.ask(stream, present, [](const SharedStreamEnd&) { return false; });
}

bool Recording::reachOf(Stream stream, Reach& reach) {
  Frontier frontier;
  if (!frontierOf(stream, frontier)) return false;
  reach.capture = frontier.capture;
  CaptureOrder& order = orders_.try_emplace(reach.capture, device_).first->second;
  return order.reachOf(frontier.nodes, reach.lanes);
}

bool Recording::follows(const Reach& reach, const Nodes& nodes) const {
  const CaptureOrder& order = orders_.at(reach.capture);
  return std::all_of(nodes.begin(), nodes.end(),
                     [&](GraphNode node) { return order.follows(reach.lanes, node); });
}

}  // namespace cistern
