#include "allocator/engine/core/progress.hpp"

#include <algorithm>
#include <new>
#include <thread>
#include <utility>

#include "allocator/base/sabotage.hpp"

namespace cistern {

bool StreamProgress::answers(Stream stream) {
  const KnownStreams::Look at = streams_.look(stream);
  return at.forgotten || streams_.answersNow(stream);
}

bool StreamProgress::idle(Stream stream) {
  const KnownStreams::Look at = streams_.look(stream);
  if (at.forgotten) return at.end == nullptr;
  const RelaxedCaptureMode relaxed(device_);
  if (streams_.answersNow(stream)) return query(stream);
  return at.before_capture && events_.ask(*at.before_capture) == Answer::kReached;
}

bool StreamProgress::mayHaveWork(Stream stream) {
  {
    const KnownStreams::Look at = streams_.look(stream);
    if (at.forgotten) return at.end != nullptr;
    const Result<CaptureInfo> info = device_.captureInfo(stream);
    if (!info && isGone(info.error())) return false;
  }
  return !idle(stream);
}

void StreamProgress::captureBegins() noexcept {
  ++changes_;
  ++captures_;
  while (asking_ != 0) std::this_thread::yield();
}

// Whether it is idle; false while it must not be queried. Pre: the stream stays present.
bool StreamProgress::query(Stream stream) noexcept {
  ++asking_;
  const Result<bool> idle = captures_ == 0 ? device_.queryStream(stream) : Result<bool>(false);
  --asking_;
  return idle.ok() && idle.value();
}

// ---- Marks --------------------------------------------------------------------------------------

// The work that a stream has queued. The stream does not tell if a capture that it has joined
// records it, or the device fails. One that was destroyed without notice cannot be asked: only its
// own heap waits for it. If a capture begins or ends meanwhile, it may have taken the event. That
// does no harm: nobody asks the event before it is recorded again.
DeviceMark::Work StreamProgress::workOf(Stream stream) {
  const KnownStreams::Look at = streams_.look(stream);
  if (at.forgotten) return {true, at.end};
  const std::uint32_t changes = changes_;
  const Result<CaptureInfo> info = device_.captureInfo(stream);
  if (!info) return {isGone(info.error()), nullptr, isGone(info.error())};
  if (info.value().status != CaptureStatus::kNone)
    return {at.before_capture != nullptr, at.before_capture};
  if (query(stream)) return {true};
  const Result<SharedEvent> event = streams_.eventBehind(stream);
  if (event) return {event.value() != nullptr && changes_ == changes, event.value()};
  // A stream of another device, which recordStream has named, takes no event of this one.
  const bool foreign = isGone(event.error());
  return {foreign, nullptr, foreign};
}

// The next mark, which covers what is freed by now. Null if the host is short of memory.
SharedMark StreamProgress::nextMark() noexcept try {
  const MutexLock lock(turns_);
  if (next_ == nullptr) next_ = std::make_shared<DeviceMark>();
  return next_;
} catch (const std::bad_alloc&) {
  return nullptr;
}

// The mark that streams are asked for: the next one begins when they all were asked for the last.
// Null if nothing waits for a mark, or the host is short of memory.
SharedMark StreamProgress::presentMark() noexcept try {
  const MutexLock lock(turns_);
  if (present_ != nullptr && !present_->allAsked()) return present_;
  present_ = nullptr;
  if (next_ == nullptr) return nullptr;
  next_->begin(streams_.all());
  return present_ = std::exchange(next_, nullptr);
} catch (const std::bad_alloc&) {
  return nullptr;
}

// Asks streams for the marks that wait for it, in turn. Returns how many of `most` are left.
std::size_t StreamProgress::askStreams(std::size_t most) noexcept {
  while (most > 0) {
    const SharedMark mark = presentMark();
    if (mark == nullptr) break;
    most = mark->advance(most, [this](Stream stream) { return workOf(stream); });
  }
  return most;
}

// ---- Looking at heaps ---------------------------------------------------------------------------

// Each step is made for all heaps before the next, so that one mark does for all.
void StreamProgress::look(std::span<Looked> heaps, std::size_t most, Note note) noexcept {
  const bool may_mark = most > 0;
  bool any = false;
  for (Looked& at : heaps) any |= beginLook(at, may_mark, note);
  if (!any) return;
  const RelaxedCaptureMode relaxed(device_);
  const std::size_t left = askStreams(most);
  any = false;
  for (Looked& at : heaps) any |= beginMark(at, may_mark);
  if (!any) return;
  const SharedMark mark = nextMark();
  (void)askStreams(left);
  for (const Looked& at : heaps) {
    if (at.marks) endLook(at, mark);
  }
}

std::vector<StreamProgress::Looked> StreamProgress::look(const std::vector<Heap*>& heaps,
                                                         std::size_t most, Note note) {
  std::vector<Looked> all;
  all.reserve(heaps.size());
  for (Heap* heap : heaps) all.push_back({heap});
  look(std::span(all), most, note);
  return all;
}

// A look takes no lock that a caller of this one may hold.
void StreamProgress::refresh(const std::vector<Heap*>& heaps) {
  for (Looked& at : look(heaps, kAll)) {
    for (; at.whose == Completion::Look::kOthers; std::this_thread::yield())
      look({&at, 1}, kAll, nullptr);
  }
}

// True if there is something to learn. Then nobody else looks at the heap until beginMark returns
// false, or endLook.
bool StreamProgress::beginLook(Looked& at, bool may_mark, Note note) noexcept {
  Heap& heap = *at.heap;
  const MutexLock lock(heap.mutex());
  if (note != nullptr) (heap.completion().*note)();
  at.whose = heap.completion().beginLook(may_mark && wantsMark(heap));
  return at.whose == Completion::Look::kOurs;
}

// The marks that are reached are passed. False if no other is to be made: then the look is over.
bool StreamProgress::beginMark(Looked& at, bool may_mark) noexcept {
  if (at.whose != Completion::Look::kOurs) return false;
  Heap& heap = *at.heap;
  while (passOldest(heap)) {
  }
  const MutexLock lock(heap.mutex());
  at.marks = may_mark && wantsMark(heap);
  if (!at.marks) {
    heap.completion().endLook();
    return false;
  }
  at.again = !heap.completion().hasRoom();
  heap.completion().beginMark();
  at.until = heap.endedEpoch();
  return true;
}

// If no stream was queried, the events may be complete already.
void StreamProgress::endLook(const Looked& at, const SharedMark& mark) noexcept {
  Heap& heap = *at.heap;
  Answer answer = Answer::kInVain;
  if (mark != nullptr) {
    const Stream own = heap.stream();
    answer = captures_ != 0 ? mark->ask(events_, own) : mark->answer(own);
  }
  if (broken(Rule::kUntold)) answer = idle(heap.stream()) ? Answer::kReached : Answer::kInVain;
  const MutexLock lock(heap.mutex());
  heap.completion().endMark(answer, at.until, at.again, mark);
}

// False if nothing more is to be learnt. Nobody else changes the marks meanwhile.
bool StreamProgress::passOldest(Heap& heap) noexcept {
  SharedMark oldest;
  {
    const MutexLock lock(heap.mutex());
    oldest = heap.completion().oldest();
  }
  if (oldest == nullptr) return false;
  const Answer answer = oldest->ask(events_, heap.stream());
  if (answer == Answer::kNotYet) return false;
  const MutexLock lock(heap.mutex());
  heap.completion().passOldest(answer);
  return true;
}

// While a capture into the heap's pool is under way, the streams' progress says nothing of what the
// capture has freed. The captured work has not run. A mark from before the capture covers what was
// freed then.
bool StreamProgress::wantsMark(Heap& heap) {
  const Completion& known = heap.completion();
  return known.anyUnmarked() && known.captured() == 0;
}

// ---- Order, and waiting -------------------------------------------------------------------------

bool StreamProgress::orderAfterAll(Stream later) {
  const RelaxedCaptureMode relaxed(device_);
  DeviceMark queued;
  try {
    queued.begin(streams_.all());
  } catch (const std::bad_alloc&) {
    return false;
  }
  (void)queued.advance(kAll, [this](Stream stream) { return workOf(stream); });
  return queued.order([&](const std::vector<SharedEvent>& events) {
    const KnownStreams::Look at = streams_.look(later);
    if (at.forgotten || !streams_.answersNow(later)) return false;
    return std::ranges::all_of(
        events, [&](const auto& event) { return device_.waitEvent(later, *event).ok(); });
  });
}

// Epochs end first, so that what is freed meanwhile is not taken for complete. Nor is memory that a
// capture has freed: the captured work has not run.
bool StreamProgress::completeAll(const std::vector<Heap*>& heaps) {
  std::vector<std::uint64_t> ended;
  ended.reserve(heaps.size());
  for (Heap* heap : heaps) {
    const MutexLock lock(heap->mutex());
    const std::uint64_t now = heap->endedEpoch();
    const Completion& known = heap->completion();
    ended.push_back(known.captured() == 0 ? now : known.completed());
  }
  const RelaxedCaptureMode relaxed(device_);
  if (!device_.synchronizeDevice()) return false;
  for (std::size_t i = 0; i < heaps.size(); ++i) {
    const MutexLock lock(heaps[i]->mutex());
    heaps[i]->completion().noteComplete(ended[i]);
  }
  return true;
}

bool StreamProgress::holdsNothing(Heap& heap) {
  {
    const MutexLock lock(heap.mutex());  // most have memory: the device is not asked for those
    if (heap.reservedBytes() != 0) return false;
  }
  heap.forgotten() ? refresh(heap) : refreshByEvent(heap);
  const MutexLock lock(heap.mutex());
  return heap.holdsNothing();
}

}  // namespace cistern
