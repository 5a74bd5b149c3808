#include "allocator/engine/progress.hpp"

#include <algorithm>
#include <thread>

namespace cistern {

bool StreamProgress::answersNow(Stream stream) {
  const Result<CaptureInfo> info = device_.captureInfo(stream);
  return info.ok() && info.value().status == CaptureStatus::kNone;
}

bool StreamProgress::answers(Stream stream) {
  return streams_.ask(
      stream, [&] { return answersNow(stream); }, [](const SharedStreamEnd&) { return true; });
}

bool StreamProgress::idle(Stream stream) {
  return streams_.ask(
      stream, [&] { return answersNow(stream) && ask(stream); },
      [](const SharedStreamEnd& end) { return end == nullptr; });
}

void StreamProgress::captureBegins() noexcept {
  ++changes_;
  ++captures_;
  while (asking_ != 0) std::this_thread::yield();
}

void StreamProgress::captureEnds() noexcept {
  ++changes_;
  --captures_;
}

// Whether it is idle; false where it must not be asked.
bool StreamProgress::ask(Stream stream) noexcept {
  ++asking_;
  const Result<bool> idle = captures_ == 0 ? device_.queryStream(stream) : Result<bool>(false);
  --asking_;
  return idle.ok() && idle.value();
}

// What has been passed, or recorded by a capture and so marks nothing, is no event of the heap's
// any more: a capture that nobody told of can begin and end between two looks at the stream.
StreamProgress::Answer StreamProgress::ask(Event event) noexcept {
  const Result<bool> passed = device_.queryEvent(event);
  const bool captured = !passed.ok() && passed.error().kind == ErrorKind::kCaptureForbidden;
  const bool complete = passed.ok() && passed.value();
  if (complete || captured) events_.give(event);
  return captured ? Answer::kInVain : complete ? Answer::kPassed : Answer::kNotYet;
}

// False also where a capture, of this program's or anyone's, may have recorded the event: it does
// the capture no harm as long as nobody asks the event, and is gone when that is recorded again.
// Pre: the stream answered.
bool StreamProgress::mark(Event event, Stream stream) noexcept {
  const std::uint32_t changes = changes_;
  if (!device_.recordEvent(event, stream).ok()) return false;
  return answersNow(stream) && changes_ == changes;
}

// Takes another event, so that the one which is under way stays what it is if this one fails. What
// a stream that is gone has left is marked by its end.
bool StreamProgress::markAgain(Event& event, Stream stream) noexcept {
  const auto again = [&] {
    const Result<Event> other = answersNow(stream) ? events_.take() : DeviceError{};
    if (!other) return false;
    const bool marked = mark(other.value(), stream);
    events_.give(marked ? event : other.value());
    if (marked) event = other.value();
    return marked;
  };
  return streams_.ask(stream, again, [](const SharedStreamEnd&) { return false; });
}

void StreamProgress::refresh(Heap& heap) { look(heap, false); }

void StreamProgress::refreshByEvent(Heap& heap) { look(heap, true); }

void StreamProgress::seek(Heap& heap) {
  {
    const MutexLock lock(heap.mutex());
    heap.completion.free_marks = Heap::Completion::kMostFreeMarks;
  }
  look(heap, false);
}

// What a stream says, or the end of one that is gone, is nothing of what a capture frees: the
// stream of a conditional body is idle, with nothing run, as soon as the body is recorded. An event
// from before the capture marks what was freed then.
StreamProgress::Sources StreamProgress::sourcesOf(Heap& heap, bool only_event) {
  const bool recorded = heap.recorded != 0;
  return {!only_event && !recorded && !heap.gone(), !recorded && heap.gone()};
}

void StreamProgress::look(Heap& heap, bool only_event) noexcept {
  Heap::Completion seen;
  Sources sources;
  {
    const MutexLock lock(heap.mutex());
    Heap::Completion& c = heap.completion;
    sources = sourcesOf(heap, only_event);
    const bool may_mark = c.freed && (sources.stream || sources.end);
    if (c.busy || (c.under_way == 0 && !may_mark)) return;
    c.busy = true;
    seen = c;
  }
  const RelaxedCaptureMode relaxed(device_);
  const Passed passed = askMarks(seen);
  const std::uint64_t now = device_.hostNanoseconds();
  {
    const MutexLock lock(heap.mutex());
    Heap::Completion& c = heap.completion;
    note(passed, now, heap);
    const bool may_mark = c.freed && (sources.stream || sources.end);
    c.busy = may_mark && isTimeToMark(c, now);
    if (!c.busy) return;
    beginMark(heap);
  }
  endMark(heap, sources, passed.count == seen.under_way);
}

// They are passed in their order.
StreamProgress::Passed StreamProgress::askMarks(const Heap::Completion& seen) noexcept {
  Passed passed;
  for (; passed.count < seen.under_way; ++passed.count) {
    const Answer answer = ask(seen.marks[passed.count].event);
    if (answer == Answer::kNotYet) break;
    if (answer == Answer::kPassed) passed.complete = passed.count + 1;
    passed.any_in_vain |= answer == Answer::kInVain;
  }
  return passed;
}

// Epochs may have been renumbered since the events were asked: the heap's own records say which.
void StreamProgress::note(const Passed& passed, std::uint64_t now, Heap& heap) {
  Heap::Completion& c = heap.completion;
  if (passed.complete > 0) {
    const Heap::Mark& last = c.marks[passed.complete - 1];
    c.completed = std::max(c.completed, last.epoch);
    c.took = now - last.at;
  }
  std::copy(c.marks.begin() + std::ptrdiff_t(passed.count),
            c.marks.begin() + std::ptrdiff_t(c.under_way), c.marks.begin());
  c.under_way = std::uint8_t(c.under_way - passed.count);
  c.freed |= passed.any_in_vain;  // the next covers it too
}

// What is freed waits hardly longer than it has to, and the device is not asked for what is nearly
// the same.
bool StreamProgress::isTimeToMark(const Heap::Completion& completion, std::uint64_t now) {
  constexpr std::uint64_t kPart = 32;
  if (completion.under_way == 0) return true;
  if (without(Mechanism::kSeveralMarks)) return false;
  if (completion.under_way == Heap::Completion::kMostMarks) return false;
  if (without(Mechanism::kTimeToMark)) return true;
  return now - completion.marks[completion.under_way - 1u].at >= completion.took / kPart;
}

void StreamProgress::beginMark(Heap& heap) {
  Heap::Completion& c = heap.completion;
  c.marked = heap.endEpoch();
  c.freed = false;
  c.freed_bytes = 0;
}

// Pre: a mark has begun, and nobody else is at it.
void StreamProgress::endMark(Heap& heap, Sources sources, bool ask_stream) noexcept {
  Event event;
  const Marked marked = streams_.ask(
      heap.stream(),
      [&] { return sources.stream ? askOrMark(heap.stream(), ask_stream, event) : Marked::kNoWay; },
      [&](const SharedStreamEnd& end) {
        return sources.end && end == nullptr ? Marked::kComplete : Marked::kNoWay;
      });
  const std::uint64_t now = device_.hostNanoseconds();
  const MutexLock lock(heap.mutex());
  Heap::Completion& c = heap.completion;
  if (marked == Marked::kComplete) c.completed = c.marked;
  if (marked == Marked::kUnderWay) c.marks[c.under_way++] = {event, c.marked, now};
  if (marked == Marked::kNoWay) c.freed = true;  // the next covers it too
  c.busy = false;
}

void StreamProgress::markFreed(Heap& heap) noexcept {
  {
    const MutexLock lock(heap.mutex());
    Heap::Completion& c = heap.completion;
    c.freed_bytes = 0;
    if (c.free_marks > 0) --c.free_marks;
  }
  look(heap, false);
}

// What is left unmarked after a look has as many events under way as there may be, or a stream that
// does not answer. Another event is recorded for the youngest.
void StreamProgress::markNow(Heap& heap) {
  refresh(heap);
  std::uint32_t marked_before = 0;
  Event event;
  {
    const MutexLock lock(heap.mutex());
    Heap::Completion& c = heap.completion;
    if (c.busy || c.under_way == 0 || !c.freed || heap.recorded != 0) return;
    c.busy = true;
    marked_before = c.marked;
    beginMark(heap);
    event = c.marks[c.under_way - 1u].event;
  }
  const RelaxedCaptureMode relaxed(device_);
  const bool recorded = markAgain(event, heap.stream());
  const MutexLock lock(heap.mutex());
  Heap::Completion& c = heap.completion;
  Heap::Mark& youngest = c.marks[c.under_way - 1u];
  youngest.event = event;
  if (recorded) {
    youngest.epoch = c.marked;
  } else {
    c.marked = std::min(c.marked, marked_before);
    c.freed = true;
  }
  c.busy = false;
}

void StreamProgress::letGo(Heap& heap) noexcept {
  Heap::Completion& c = heap.completion;
  while (c.under_way > 0) events_.give(c.marks[--c.under_way].event);
}

// Whether nothing is queued; else an event is under way, if one could be had.
StreamProgress::Marked StreamProgress::askOrMark(Stream stream, bool ask_stream,
                                                 Event& event) noexcept {
  if (!answersNow(stream)) return Marked::kNoWay;
  if (ask_stream && ask(stream)) return Marked::kComplete;
  const Result<Event> taken = events_.take();
  if (!taken) return Marked::kNoWay;
  event = taken.value();
  if (!mark(event, stream)) {
    events_.give(event);
    return Marked::kNoWay;
  }
  if (captures_ == 0 || !ask_stream) return Marked::kUnderWay;
  switch (ask(event)) {  // the stream itself was not asked
    case Answer::kPassed:
      return Marked::kComplete;
    case Answer::kInVain:
      return Marked::kNoWay;
    case Answer::kNotYet:
      break;
  }
  return Marked::kUnderWay;
}

// What is queued on the stream from now on comes after the event. False also for one that is gone:
// nothing more is queued on it.
bool StreamProgress::waitFor(Event event, Stream stream) {
  return streams_.ask(
      stream, [&] { return answersNow(stream) && device_.waitEvent(stream, event).ok(); },
      [](const SharedStreamEnd&) { return false; });
}

// Either may be gone, and only one at a time is kept from going.
bool StreamProgress::orderAfter(Stream later, Stream earlier) {
  SharedStreamEnd end;
  const auto marked = [&] {
    const Result<Event> event = answersNow(earlier) ? events_.take() : DeviceError{};
    if (!event || mark(event.value(), earlier)) return event;
    events_.give(event.value());
    return Result<Event>(DeviceError{});
  };
  const auto ended = [&](const SharedStreamEnd& known) {
    end = known;
    return Result<Event>(known ? known->event() : Event{});
  };
  const Result<Event> event = streams_.ask(earlier, marked, ended);
  if (!event) return false;
  if (event.value() == Event{}) return true;  // it has gone, and all its work is complete
  const bool ordered = waitFor(event.value(), later);
  if (end == nullptr) events_.give(event.value());
  return ordered;
}

// Epochs end first, so that what is freed meanwhile is not taken for complete. What a capture has
// freed is not: it has not run.
bool StreamProgress::completeAll(const std::vector<Heap*>& heaps) {
  std::vector<EpochMark> ended;
  ended.reserve(heaps.size());
  for (Heap* heap : heaps) {
    const MutexLock lock(heap->mutex());
    const EpochMark now = heap->endedEpoch();
    ended.push_back(heap->recorded == 0 ? now
                                        : EpochMark{heap->completion.completed, now.generation});
  }
  const RelaxedCaptureMode relaxed(device_);
  if (!device_.synchronizeDevice()) return false;
  for (std::size_t i = 0; i < heaps.size(); ++i) {
    const MutexLock lock(heaps[i]->mutex());
    heaps[i]->noteComplete(ended[i]);
  }
  return true;
}

}  // namespace cistern
