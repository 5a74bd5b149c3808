#include "allocator/engine/pending_frees.hpp"

#include <algorithm>
#include <utility>

#include "allocator/base/process.hpp"

namespace cistern {

PendingFrees::~PendingFrees() {
  const bool driver = driverMayBeCalled();
  const MutexLock lock(mutex_);
  std::vector<Retired> ready;
  for (const auto& queue : queues_) {
    const MutexLock queue_lock(queue->mutex);
    for (Point& point : queue->points) {
      for (Waiting* waiting : point.blocks) arrived(*waiting, ready);
      if (driver && !point.end) (void)device_.destroyEvent(point.event);
    }
  }
  for (const PutOff& put_off : put_off_) arrived(*put_off.waiting, ready);
  for (Waiting* waiting : stuck_) arrived(*waiting, ready);
}

PendingFrees::Queue& PendingFrees::queueOf(Stream stream) {
  const MutexLock lock(mutex_);
  for (const auto& queue : queues_) {
    if (queue->stream == stream) return *queue;
  }
  queues_.push_back(std::make_unique<Queue>(stream));
  return *queues_.back();
}

std::vector<PendingFrees::Queue*> PendingFrees::queues() const {
  const MutexLock lock(mutex_);
  std::vector<Queue*> queues;
  for (const auto& queue : queues_) queues.push_back(queue.get());
  return queues;
}

bool PendingFrees::add(Retired retired, const StreamUses& streams) {
  waiting_.fetch_add(1, std::memory_order_relaxed);
  polls_in_vain_.store(0, std::memory_order_relaxed);
  // One point more than there are streams, until all are attached: a poll in between must not
  // take the first for the last.
  auto* waiting = new Waiting{retired, {int(streams.size()) + 1}};
  int attached = 0;
  bool stuck = false;
  for (Stream stream : streams) {
    const Wait wait = attachOrPutOff(stream, *waiting, false);
    attached += wait == Wait::kAttached ? 1 : 0;
    stuck |= wait == Wait::kNoWay;
  }
  if (stuck) {
    const MutexLock lock(mutex_);
    stuck_.push_back(waiting);
  }
  const int unneeded = int(streams.size()) + 1 - attached - (stuck ? 1 : 0);
  if (waiting->points.fetch_sub(unneeded, std::memory_order_acq_rel) != unneeded) return false;
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  delete waiting;
  return true;
}

PendingFrees::Wait PendingFrees::attachOrPutOff(Stream stream, Waiting& waiting, bool last_resort) {
  return streams_.ask(
      stream, [&] { return attachToPresent(stream, waiting, last_resort); },
      [&](const SharedStreamEnd& end) { return attachToEnd(stream, end, waiting); });
}

// Whether a capture takes what is recorded on the stream. Where the device does not tell, one may.
PendingFrees::Recorder PendingFrees::recorderOf(Stream stream) {
  const Result<CaptureInfo> info = device_.captureInfo(stream);
  if (info.ok())
    return info.value().status == CaptureStatus::kNone ? Recorder::kNone : Recorder::kCapture;
  return info.error().kind == ErrorKind::kInvalidHandle ? Recorder::kDead : Recorder::kUnknown;
}

// At the last resort a stream that does not tell is asked no more, and an event that cannot be had
// is not hoped for.
PendingFrees::Wait PendingFrees::attachToPresent(Stream stream, Waiting& waiting,
                                                 bool last_resort) {
  const Recorder recorder = recorderOf(stream);
  if (recorder == Recorder::kDead) return Wait::kNoWay;
  if (recorder == Recorder::kNone && attach(queueOf(stream), waiting)) return Wait::kAttached;
  if (recorder != Recorder::kCapture && last_resort) return Wait::kNoWay;
  putOff(stream, {&waiting});
  return Wait::kAttached;
}

void PendingFrees::putOff(Stream stream, const std::vector<Waiting*>& blocks) {
  const MutexLock lock(mutex_);
  for (Waiting* waiting : blocks) put_off_.push_back({stream, waiting});
}

// The end's event stays as it is; a stream with that handle that is met later has points of its own
// behind it.
PendingFrees::Wait PendingFrees::attachToEnd(Stream stream, const SharedStreamEnd& end,
                                             Waiting& waiting) {
  if (end == nullptr) return Wait::kOver;
  Queue& queue = queueOf(stream);
  const MutexLock lock(queue.mutex);
  if (queue.points.empty() || queue.points.back().end != end) {
    queue.points.push_back({end->event(), {}, end});
    queue.open = false;
  }
  queue.points.back().blocks.push_back(&waiting);
  return Wait::kAttached;
}

// What cannot be recorded at the last resort either waits for the whole device.
void PendingFrees::attachPutOff(bool last_resort, std::vector<Retired>& ready) {
  std::vector<PutOff> now;
  {
    const MutexLock lock(mutex_);
    now.swap(put_off_);
  }
  for (const PutOff& put_off : now) {
    const Wait wait = attachOrPutOff(put_off.stream, *put_off.waiting, last_resort);
    if (wait == Wait::kOver) arrived(*put_off.waiting, ready);
    if (wait != Wait::kNoWay) continue;
    const MutexLock lock(mutex_);
    stuck_.push_back(put_off.waiting);
  }
}

// Records the queue's newest point after the free and hangs the block on it. A capture may have
// begun since the stream was asked. Then the event may be the capture's, which asking it would
// break, and all that hangs on it is put off. False when no event could be recorded.
bool PendingFrees::attach(Queue& queue, Waiting& waiting) {
  std::vector<Waiting*> captured;
  {
    const MutexLock lock(queue.mutex);
    if (!queue.open) {
      Result<Event> event = events_.take();
      if (!event) return false;
      queue.points.push_back({event.value(), {}, nullptr});
      queue.open = true;
    }
    Point& point = queue.points.back();
    const bool recorded = device_.recordEvent(point.event, queue.stream).ok();
    if (recorded) point.blocks.push_back(&waiting);
    const bool may_be_captured = recorded && recorderOf(queue.stream) != Recorder::kNone;
    if (may_be_captured) captured.swap(point.blocks);
    if (point.blocks.empty()) {
      letGo(point);
      queue.points.pop_back();
      queue.open = false;
    }
    if (!recorded) return false;
  }
  putOff(queue.stream, captured);
  return true;
}

void PendingFrees::arrived(Waiting& waiting, std::vector<Retired>& ready) {
  if (waiting.points.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  ready.push_back(waiting.retired);
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  delete &waiting;
}

void PendingFrees::letGo(const Point& point) {
  if (!point.end) events_.give(point.event);
}

// An event that a capture has recorded marks nothing, and never will. Only one that began and ended
// between two looks at the stream leaves such an event behind.
PendingFrees::Answer PendingFrees::answerOf(const Status& status) {
  if (status.ok()) return Answer::kReached;
  return status.error().kind == ErrorKind::kCaptureForbidden ? Answer::kCaptured : Answer::kNone;
}

PendingFrees::Answer PendingFrees::ask(const Point& point) {
  const Result<bool> done = device_.queryEvent(point.event);
  if (!done.ok()) return answerOf(done.error());
  return done.value() ? Answer::kReached : Answer::kNone;
}

// Its blocks are ready, or, where it was recorded in vain, get another point.
void PendingFrees::leave(const Queue& queue, const Point& point, Answer answer,
                         std::vector<Retired>& ready) {
  if (answer == Answer::kReached) {
    for (Waiting* waiting : point.blocks) arrived(*waiting, ready);
  } else {
    putOff(queue.stream, point.blocks);
  }
  letGo(point);
}

void PendingFrees::collect(Queue& queue, std::vector<Retired>& ready) {
  for (bool first = true;; first = false) {
    Point oldest;
    Answer answer = Answer::kNone;
    {
      const MutexLock lock(queue.mutex);
      if (first) queue.open = false;
      if (queue.points.empty()) return;
      answer = ask(queue.points.front());
      if (answer == Answer::kNone) return;
      ready.reserve(ready.size() + queue.points.front().blocks.size());
      queue.open = queue.open && queue.points.size() > 1;
      oldest = std::move(queue.points.front());
      queue.points.pop_front();
    }
    leave(queue, oldest, answer, ready);
  }
}

// The point is out of the queue while it is waited for, so that others may attach and poll. False
// when there is none, or it cannot be waited for.
bool PendingFrees::waitForOldest(Queue& queue, std::vector<Retired>& ready) {
  Point oldest;
  {
    const MutexLock lock(queue.mutex);
    if (queue.points.empty()) return false;
    queue.open = queue.open && queue.points.size() > 1;
    oldest = std::move(queue.points.front());
    queue.points.pop_front();
  }
  const Answer answer = answerOf(device_.synchronizeEvent(oldest.event));
  if (answer == Answer::kNone) {
    const MutexLock lock(queue.mutex);
    queue.points.push_front(std::move(oldest));
    return false;
  }
  leave(queue, oldest, answer, ready);
  return true;
}

// What hangs on no event is ready when all work of the device is complete.
void PendingFrees::collectStuck(std::vector<Retired>& ready) {
  std::vector<Waiting*> stuck;
  {
    const MutexLock lock(mutex_);
    stuck.swap(stuck_);
  }
  if (stuck.empty()) return;
  const bool complete = device_.synchronizeDevice().ok();
  if (complete) {
    for (Waiting* waiting : stuck) arrived(*waiting, ready);
    return;
  }
  const MutexLock lock(mutex_);
  stuck_.insert(stuck_.end(), stuck.begin(), stuck.end());
}

std::vector<PendingFrees::Retired> PendingFrees::poll() {
  std::vector<Retired> ready;
  if (waiting() == 0) return ready;
  unsigned in_vain = polls_in_vain_.load(std::memory_order_relaxed);
  // Asking an event breaks a capture elsewhere in the program unless the thread says not to mind.
  const RelaxedCaptureMode relaxed(device_);
  attachPutOff(false, ready);
  for (Queue* queue : queues()) collect(*queue, ready);
  const unsigned now = ready.empty() ? std::min(in_vain + 1, kPollsInVain + kMostPatience) : 0;
  // Who has begun to wait meanwhile has set it to 0, and is not overruled.
  (void)polls_in_vain_.compare_exchange_strong(in_vain, now, std::memory_order_relaxed);
  return ready;
}

// The second time is for what the first has found to be recorded in vain.
std::vector<PendingFrees::Retired> PendingFrees::wait() {
  std::vector<Retired> ready;
  const RelaxedCaptureMode relaxed(device_);
  for (int times = 0; times < 2 && ready.empty(); ++times) waitOnce(ready);
  return ready;
}

void PendingFrees::waitOnce(std::vector<Retired>& ready) {
  attachPutOff(true, ready);
  for (Queue* queue : queues()) {
    for (bool more = true; more && ready.empty();) more = waitForOldest(*queue, ready);
    if (!ready.empty()) return;
  }
  collectStuck(ready);
}

std::vector<PendingFrees::Retired> PendingFrees::waitForStuck() {
  std::vector<Retired> ready;
  if (waiting() == 0) return ready;
  const RelaxedCaptureMode relaxed(device_);
  collectStuck(ready);
  return ready;
}

}  // namespace cistern
