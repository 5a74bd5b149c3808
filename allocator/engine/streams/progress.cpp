#include "allocator/engine/streams/progress.hpp"

#include <thread>
#include <utility>

namespace cistern {

bool StreamProgress::answers(Stream stream) {
  const KnownStreams::Look at = streams_.look(stream);
  return at.gone || streams_.answersNow(stream);
}

bool StreamProgress::idle(Stream stream) {
  const KnownStreams::Look at = streams_.look(stream);
  return at.gone ? at.end == nullptr : streams_.answersNow(stream) && ask(stream);
}

void StreamProgress::captureBegins() noexcept {
  ++changes_;
  ++captures_;
  while (asking_ != 0) std::this_thread::yield();
}

// Whether it is idle; false where it must not be asked.
bool StreamProgress::ask(Stream stream) noexcept {
  ++asking_;
  const Result<bool> idle = captures_ == 0 ? device_.queryStream(stream) : Result<bool>(false);
  --asking_;
  return idle.ok() && idle.value();
}

// An event behind all that is queued; null where none can be had, also where a capture, of this
// program's or anyone's, may have recorded it: it does the capture no harm as long as nobody asks
// the event, and is gone when that is recorded again. Pre: the stream answered.
SharedEvent StreamProgress::mark(Stream stream) noexcept {
  const Result<SharedEvent> event = events_.take();
  if (!event) return nullptr;
  const std::uint32_t changes = changes_;
  if (!device_.recordEvent(*event.value(), stream)) return nullptr;
  return streams_.answersNow(stream) && changes_ == changes ? event.value() : nullptr;
}

void StreamProgress::look(Heap& heap, bool may_mark, Note note) noexcept {
  {
    const MutexLock lock(heap.mutex());
    if (note != nullptr) (heap.completion().*note)();
    if (!heap.completion().beginLook(mayMark(heap, may_mark))) return;
  }
  const RelaxedCaptureMode relaxed(device_);
  while (passOldest(heap)) {
  }
  bool again = false, first = false;
  std::uint64_t until = 0;
  {
    const MutexLock lock(heap.mutex());
    if (!mayMark(heap, may_mark)) return heap.completion().endLook();
    again = !heap.completion().hasRoom();
    first = heap.completion().beginMark();
    until = heap.endedEpoch();
  }
  SharedEvent event;
  Answer answer = Answer::kInVain;
  {
    const KnownStreams::Look at = streams_.look(heap.stream());
    if (at.gone && at.end == nullptr) answer = Answer::kReached;
    if (!at.gone && may_mark) answer = askOrMark(heap.stream(), first, event);
  }
  const MutexLock lock(heap.mutex());
  heap.completion().endMark(answer, until, again, std::move(event));
}

// False where nothing more is to be learnt. Nobody else changes the marks meanwhile.
bool StreamProgress::passOldest(Heap& heap) noexcept {
  SharedEvent event;
  {
    const MutexLock lock(heap.mutex());
    event = heap.completion().oldest();
  }
  if (event == nullptr) return false;
  const Answer answer = events_.ask(*event);
  if (answer == Answer::kNotYet) return false;
  const MutexLock lock(heap.mutex());
  heap.completion().passOldest(answer);
  return true;
}

// What a stream says, or the end of one that is gone, is nothing of what a capture frees: the
// stream of a conditional body is idle, with nothing run, as soon as the body is recorded. An event
// from before the capture marks what was freed then.
bool StreamProgress::mayMark(Heap& heap, bool may_mark) {
  const Completion& known = heap.completion();
  return known.anyUnmarked() && known.recorded() == 0 && (may_mark || heap.gone());
}

// Whether nothing is queued; else an event is under way, or could not be had.
StreamProgress::Answer StreamProgress::askOrMark(Stream stream, bool first,
                                                 SharedEvent& event) noexcept {
  if (!streams_.answersNow(stream)) return Answer::kInVain;
  if (first && ask(stream)) return Answer::kReached;
  event = mark(stream);
  if (event == nullptr) return Answer::kInVain;
  const bool was_asked = !first || captures_ == 0;
  return was_asked ? Answer::kNotYet : events_.ask(*event);
}

// Either may be gone, and only one at a time is kept from going. Nothing more is queued on one that
// is.
bool StreamProgress::orderAfter(Stream later, Stream earlier) {
  SharedEvent event;
  {
    const KnownStreams::Look at = streams_.look(earlier);
    if (at.gone && at.end == nullptr) return true;
    event = at.gone ? at.end : streams_.answersNow(earlier) ? mark(earlier) : nullptr;
  }
  if (event == nullptr) return false;
  const KnownStreams::Look at = streams_.look(later);
  return !at.gone && streams_.answersNow(later) && device_.waitEvent(later, *event).ok();
}

// Epochs end first, so that what is freed meanwhile is not taken for complete. What a capture has
// freed is not: it has not run.
bool StreamProgress::completeAll(const std::vector<Heap*>& heaps) {
  std::vector<std::uint64_t> ended;
  ended.reserve(heaps.size());
  for (Heap* heap : heaps) {
    const MutexLock lock(heap->mutex());
    const std::uint64_t now = heap->endedEpoch();
    const Completion& known = heap->completion();
    ended.push_back(known.recorded() == 0 ? now : known.completed());
  }
  const RelaxedCaptureMode relaxed(device_);
  if (!device_.synchronizeDevice()) return false;
  for (std::size_t i = 0; i < heaps.size(); ++i) {
    const MutexLock lock(heaps[i]->mutex());
    heaps[i]->completion().noteComplete(ended[i]);
  }
  return true;
}

}  // namespace cistern
