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

// Whether the event that is under way has been passed; then it is none any more. Nor is one that a
// capture turns out to have recorded, which marks nothing: a capture that nobody told of can begin
// and end between two looks at the stream.
bool StreamProgress::passed(Heap::Completion& completion) noexcept {
  const Result<bool> passed = device_.queryEvent(completion.event);
  const bool captured = !passed.ok() && passed.error().kind == ErrorKind::kCaptureForbidden;
  const bool complete = passed.ok() && passed.value();
  if (complete || captured) events_.give(completion.event);
  if (captured) completion.under_way = false;
  return complete;
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

// Once what is under way is complete, what was freed since is marked at once.
void StreamProgress::refresh(Heap& heap) {
  if (askOnce(heap, false)) (void)askOnce(heap, false);
}

void StreamProgress::refreshByEvent(Heap& heap) { (void)askOnce(heap, true); }

// What is left unmarked after a look has an older event under way, or a stream that does not
// answer. Another event is recorded: what the older one marked is complete when that is.
void StreamProgress::markNow(Heap& heap) {
  refresh(heap);
  std::uint32_t marked_before = 0;
  Event event;
  {
    const MutexLock lock(heap.mutex());
    Heap::Completion& c = heap.completion;
    if (c.busy || !c.under_way || !c.freed || heap.recorded != 0) return;
    c.busy = true;
    c.freed = false;
    marked_before = c.marked;
    c.marked = heap.endEpoch();
    event = c.event;
  }
  const bool recorded = markAgain(event, heap.stream());
  const MutexLock lock(heap.mutex());
  Heap::Completion& c = heap.completion;
  c.event = event;
  if (!recorded) {
    c.marked = std::min(c.marked, marked_before);
    c.freed = true;
  }
  c.busy = false;
}

// True when it has learnt that something is complete. What a stream says, or the end of one that is
// gone, is nothing of what a capture frees: the stream of a conditional body is idle, with nothing
// run, as soon as the body is recorded. An event from before the capture marks what was freed then.
bool StreamProgress::askOnce(Heap& heap, bool only_event) {
  Heap::Completion seen;
  Sources sources{false, false};
  {
    const MutexLock lock(heap.mutex());
    Heap::Completion& c = heap.completion;
    sources.end = heap.recorded == 0;
    sources.stream = !only_event && heap.recorded == 0;
    const bool any = heap.gone() ? sources.end : sources.stream;
    if (c.busy || (!c.under_way && !(any && c.freed))) return false;
    c.busy = true;
    if (!c.under_way) {
      c.marked = heap.endEpoch();
      c.freed = false;
    }
    seen = c;
  }
  const bool complete = markOrAsk(heap.stream(), seen, sources);
  const MutexLock lock(heap.mutex());
  Heap::Completion& c = heap.completion;
  if (complete) c.completed = c.marked;
  if (!complete && !seen.under_way) c.freed = true;  // neither worked; the next covers it too
  c.under_way = seen.under_way && !complete;
  c.event = seen.event;
  c.busy = false;
  return complete;
}

// True when all that was queued on the stream by the last mark is complete.
bool StreamProgress::markOrAsk(Stream stream, Heap::Completion& completion,
                               Sources sources) noexcept {
  const RelaxedCaptureMode relaxed(device_);
  if (!completion.under_way) {
    return streams_.ask(
        stream, [&] { return sources.stream && askOrMark(stream, completion); },
        [&](const SharedStreamEnd& end) { return sources.end && end == nullptr; });
  }
  return passed(completion);
}

// True when nothing is queued; else an event is under way, if one could be had.
bool StreamProgress::askOrMark(Stream stream, Heap::Completion& completion) noexcept {
  if (!answersNow(stream)) return false;
  if (ask(stream)) return true;
  const Result<Event> event = events_.take();
  if (!event) return false;
  completion.event = event.value();
  completion.under_way = mark(completion.event, stream);
  if (!completion.under_way) events_.give(completion.event);
  if (!completion.under_way || captures_ == 0) return false;
  return passed(completion);  // the stream itself was not asked
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
