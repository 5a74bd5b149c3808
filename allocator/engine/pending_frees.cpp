#include "allocator/engine/pending_frees.hpp"

#include <algorithm>
#include <new>

#include "allocator/base/process.hpp"

namespace cistern {

PendingFrees::Waiting::Waiting(Retired what, const StreamUses& streams)
    : retired(what), points(int(streams.size()) + 1) {
  uses.reserve(streams.size());
  for (const Stream stream : streams) uses.push_back({stream, this});
}

bool PendingFrees::Ready::pop(Retired& retired) noexcept {
  if (Waiting* const waiting = first_) {
    retired = waiting->retired;
    first_ = waiting->next;
    delete waiting;
    return true;
  }
  Block* const block = unknown_.pop();
  if (block != nullptr)
    retired = {segmentOf(*block).heap.load(std::memory_order_relaxed), block, true, true};
  return block != nullptr;
}

PendingFrees::~PendingFrees() {
  const bool driver = driverMayBeCalled();
  const MutexLock lock(mutex_);
  Ready ready;
  for (auto& [stream, queue] : queues_) {
    const MutexLock queue_lock(queue.mutex);
    for (Point& point : queue.points) {
      arrived(point.blocks, ready);
      if (driver && !point.end) (void)device_.destroyEvent(point.event);
    }
  }
  arrived(put_off_, ready);
  arrived(stuck_, ready);
  for (Retired one; ready.pop(one);) {
  }
}

// ---- Which queues there are ---------------------------------------------------------------------

// A stream's, for as long as this lives; null where the host has no memory for one.
class PendingFrees::InUse {
 public:
  InUse(PendingFrees& all, Stream stream) noexcept : all_(all), queue_(all.startUse(stream)) {}
  ~InUse() {
    if (queue_ != nullptr) all_.endUse(*queue_);
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
  Queue* get() const { return queue_; }

 private:
  PendingFrees& all_;
  Queue* const queue_;
};

PendingFrees::Queue* PendingFrees::startUse(Stream stream) noexcept {
  const MutexLock lock(mutex_);
  try {
    const auto [it, made] = queues_.try_emplace(stream.raw, stream);
    Queue& queue = it->second;
    if (made) {
      queue.previous = last_;
      (last_ ? last_->next : first_) = &queue;
      last_ = &queue;
    }
    ++queue.users;
    return &queue;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void PendingFrees::endUse(Queue& queue) noexcept {
  const MutexLock lock(mutex_);
  --queue.users;
}

// From one that is in use to the next, or from none to the first; null behind the last.
PendingFrees::Queue* PendingFrees::moveOn(Queue* from) noexcept {
  const MutexLock lock(mutex_);
  Queue* const to = from ? from->next : first_;
  if (to != nullptr) ++to->users;
  if (from != nullptr) {
    --from->users;
    dropIfEmpty(*from);
  }
  return to;
}

void PendingFrees::dropIfEmpty(Queue& queue) noexcept {
  if (queue.users > 0) return;
  {
    const MutexLock lock(queue.mutex);
    if (!queue.points.empty()) return;
  }
  (queue.previous ? queue.previous->next : first_) = queue.next;
  (queue.next ? queue.next->previous : last_) = queue.previous;
  queues_.erase(queue.stream.raw);
}

// Calls visit(Queue&) for each, without the lock, until it returns false.
template <class Visit>
void PendingFrees::forEachQueue(Visit visit) noexcept {
  for (Queue* queue = moveOn(nullptr); queue; queue = moveOn(queue)) {
    if (!visit(*queue)) return endUse(*queue);
  }
}

// ---- Blocks come --------------------------------------------------------------------------------

// One point more than there are streams, until all are attached: a poll in between must not take
// the first for the last.
bool PendingFrees::add(Retired retired, const StreamUses& streams) noexcept {
  polls_in_vain_.store(0, std::memory_order_relaxed);
  Waiting* waiting = nullptr;
  try {
    waiting = new Waiting(retired, streams);
  } catch (const std::bad_alloc&) {
    addUnknown(retired);
    return false;
  }
  waiting_.fetch_add(1, std::memory_order_relaxed);
  int unneeded = 1;
  Uses stuck;
  for (Use& use : waiting->uses) {
    const Wait wait = attachOrPutOff(use, false);
    if (wait == Wait::kOver) ++unneeded;
    if (wait == Wait::kNoWay) stuck.push(use);
  }
  if (!stuck.empty()) {
    const MutexLock lock(mutex_);
    stuck_.append(stuck);
  }
  if (waiting->points.fetch_sub(unneeded, std::memory_order_acq_rel) != unneeded) return false;
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  delete waiting;
  return true;
}

void PendingFrees::addUnknown(Retired retired) noexcept {
  waiting_.fetch_add(1, std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  unknown_.push(*retired.block);
}

PendingFrees::Wait PendingFrees::attachOrPutOff(Use& use, bool last_resort) noexcept {
  return streams_.ask(
      use.stream, [&] { return attachToPresent(use, last_resort); },
      [&](const SharedStreamEnd& end) { return attachToEnd(use, end); });
}

// Whether a capture takes what is recorded on the stream. Where the device does not tell, one may.
PendingFrees::Recorder PendingFrees::recorderOf(Stream stream) noexcept {
  const Result<CaptureInfo> info = device_.captureInfo(stream);
  if (info.ok())
    return info.value().status == CaptureStatus::kNone ? Recorder::kNone : Recorder::kCapture;
  return info.error().kind == ErrorKind::kInvalidHandle ? Recorder::kDead : Recorder::kUnknown;
}

// At the last resort a stream that does not tell is asked no more, and an event that cannot be had
// is not hoped for.
PendingFrees::Wait PendingFrees::attachToPresent(Use& use, bool last_resort) noexcept {
  const Recorder recorder = recorderOf(use.stream);
  if (recorder == Recorder::kDead) return Wait::kNoWay;
  if (recorder == Recorder::kNone) {
    const InUse queue(*this, use.stream);
    if (queue.get() != nullptr && attach(*queue.get(), use)) return Wait::kAttached;
  }
  if (recorder != Recorder::kCapture && last_resort) return Wait::kNoWay;
  Uses one;
  one.push(use);
  putOff(one);
  return Wait::kAttached;
}

void PendingFrees::putOff(Uses uses) noexcept {
  const MutexLock lock(mutex_);
  put_off_.append(uses);
}

// The end's event stays as it is; a stream with that handle that is met later has points of its own
// behind it.
PendingFrees::Wait PendingFrees::attachToEnd(Use& use, const SharedStreamEnd& end) noexcept {
  if (end == nullptr) return Wait::kOver;
  const InUse used(*this, use.stream);
  Queue* const queue = used.get();
  if (queue == nullptr) return Wait::kNoWay;
  const MutexLock lock(queue->mutex);
  if (queue->points.empty() || queue->points.back().end != end) {
    try {
      queue->points.push_back({end->event(), {}, end});
    } catch (const std::bad_alloc&) {
      return Wait::kNoWay;
    }
    queue->open = false;
  }
  queue->points.back().blocks.push(use);
  return Wait::kAttached;
}

// What cannot be recorded at the last resort either waits for the whole device.
void PendingFrees::attachPutOff(bool last_resort, Ready& ready) noexcept {
  Uses now;
  {
    const MutexLock lock(mutex_);
    now = put_off_.takeAll();
  }
  while (Use* use = now.pop()) {
    const Wait wait = attachOrPutOff(*use, last_resort);
    if (wait == Wait::kOver) arrived(*use, ready);
    if (wait != Wait::kNoWay) continue;
    const MutexLock lock(mutex_);
    stuck_.push(*use);
  }
}

// The newest point takes further frees from now on. False when there is none to be had.
bool PendingFrees::open(Queue& queue) noexcept {
  if (queue.open) return true;
  const Result<Event> event = events_.take();
  if (!event) return false;
  try {
    queue.points.push_back({event.value(), {}, nullptr});
  } catch (const std::bad_alloc&) {
    events_.give(event.value());
    return false;
  }
  return queue.open = true;
}

// Records the queue's newest point after the free and hangs the block on it. A capture may have
// begun since the stream was asked. Then the event may be the capture's, which asking it would
// break, and all that hangs on it is put off. False when no event could be recorded.
bool PendingFrees::attach(Queue& queue, Use& use) noexcept {
  Uses captured;
  {
    const MutexLock lock(queue.mutex);
    if (!open(queue)) return false;
    Point& point = queue.points.back();
    const bool recorded = device_.recordEvent(point.event, queue.stream).ok();
    if (recorded) point.blocks.push(use);
    const bool may_be_captured = recorded && recorderOf(queue.stream) != Recorder::kNone;
    if (may_be_captured) captured = point.blocks.takeAll();
    if (point.blocks.empty()) {
      letGo(point);
      queue.points.pop_back();
      queue.open = false;
    }
    if (!recorded) return false;
  }
  putOff(captured);
  return true;
}

void PendingFrees::arrived(Uses uses, Ready& ready) noexcept {
  while (Use* use = uses.pop()) arrived(*use, ready);
}

void PendingFrees::arrived(Use& use, Ready& ready) noexcept {
  Waiting& waiting = *use.waiting;
  if (waiting.points.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  (ready.first_ ? ready.last_->next : ready.first_) = &waiting;
  ready.last_ = &waiting;
  waiting_.fetch_sub(1, std::memory_order_relaxed);
}

void PendingFrees::letGo(const Point& point) noexcept {
  if (!point.end) events_.give(point.event);
}

// An event that a capture has recorded marks nothing, and never will. Only one that began and ended
// between two looks at the stream leaves such an event behind.
PendingFrees::Answer PendingFrees::answerOf(const Status& status) noexcept {
  if (status.ok()) return Answer::kReached;
  return status.error().kind == ErrorKind::kCaptureForbidden ? Answer::kCaptured : Answer::kNone;
}

PendingFrees::Answer PendingFrees::ask(const Point& point) noexcept {
  const Result<bool> done = device_.queryEvent(point.event);
  if (!done.ok()) return answerOf(done.error());
  return done.value() ? Answer::kReached : Answer::kNone;
}

// Its blocks are ready, or, where it was recorded in vain, get another point.
void PendingFrees::leave(Point& point, Answer answer, Ready& ready) noexcept {
  answer == Answer::kReached ? arrived(point.blocks, ready) : putOff(point.blocks);
  letGo(point);
}

void PendingFrees::collect(Queue& queue, Ready& ready) noexcept {
  for (bool first = true;; first = false) {
    std::list<Point> oldest;
    Answer answer = Answer::kNone;
    {
      const MutexLock lock(queue.mutex);
      if (first) queue.open = false;
      if (queue.points.empty()) return;
      answer = ask(queue.points.front());
      if (answer == Answer::kNone) return;
      queue.open = queue.open && queue.points.size() > 1;
      oldest.splice(oldest.end(), queue.points, queue.points.begin());
    }
    leave(oldest.front(), answer, ready);
  }
}

// The point is out of the queue while it is waited for, so that others may attach and poll. False
// when there is none, or it cannot be waited for.
bool PendingFrees::waitForOldest(Queue& queue, Ready& ready) noexcept {
  std::list<Point> oldest;
  {
    const MutexLock lock(queue.mutex);
    if (queue.points.empty()) return false;
    queue.open = queue.open && queue.points.size() > 1;
    oldest.splice(oldest.end(), queue.points, queue.points.begin());
  }
  const Answer answer = answerOf(device_.synchronizeEvent(oldest.front().event));
  if (answer == Answer::kNone) {
    const MutexLock lock(queue.mutex);
    queue.points.splice(queue.points.begin(), oldest);
    return false;
  }
  leave(oldest.front(), answer, ready);
  return true;
}

// What hangs on no event is ready when all work of the device is complete.
void PendingFrees::collectStuck(Ready& ready) noexcept {
  Uses stuck;
  RetiredBlocks unknown;
  {
    const MutexLock lock(mutex_);
    stuck = stuck_.takeAll();
    unknown = unknown_.takeAll();
  }
  if (stuck.empty() && unknown.empty()) return;
  if (!device_.synchronizeDevice()) {
    const MutexLock lock(mutex_);
    stuck_.append(stuck);
    unknown_.append(unknown);
    return;
  }
  arrived(stuck, ready);
  while (Block* block = unknown.pop()) {
    ready.unknown_.push(*block);
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
}

PendingFrees::Ready PendingFrees::poll() noexcept {
  Ready ready;
  if (waiting() == 0) return ready;
  unsigned in_vain = polls_in_vain_.load(std::memory_order_relaxed);
  // Asking an event breaks a capture elsewhere in the program unless the thread says not to mind.
  const RelaxedCaptureMode relaxed(device_);
  attachPutOff(false, ready);
  forEachQueue([&](Queue& queue) {
    collect(queue, ready);
    return true;
  });
  const unsigned now = ready.empty() ? std::min(in_vain + 1, kPollsInVain + kMostPatience) : 0;
  // Who has begun to wait meanwhile has set it to 0, and is not overruled.
  (void)polls_in_vain_.compare_exchange_strong(in_vain, now, std::memory_order_relaxed);
  return ready;
}

// The second time is for what the first has found to be recorded in vain.
PendingFrees::Ready PendingFrees::wait() noexcept {
  Ready ready;
  const RelaxedCaptureMode relaxed(device_);
  for (int times = 0; times < 2 && ready.empty(); ++times) waitOnce(ready);
  return ready;
}

void PendingFrees::waitOnce(Ready& ready) noexcept {
  attachPutOff(true, ready);
  forEachQueue([&](Queue& queue) {
    for (bool more = true; more && ready.empty();) more = waitForOldest(queue, ready);
    return ready.empty();
  });
  if (ready.empty()) collectStuck(ready);
}

PendingFrees::Ready PendingFrees::waitForStuck() noexcept {
  Ready ready;
  if (waiting() == 0) return ready;
  const RelaxedCaptureMode relaxed(device_);
  collectStuck(ready);
  return ready;
}

}  // namespace cistern
