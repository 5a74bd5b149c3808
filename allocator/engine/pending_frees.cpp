#include "allocator/engine/pending_frees.hpp"

#include <algorithm>
#include <new>

namespace cistern {

// One point more than there are streams, until all are attached: a poll in between must not take
// the first for the last.
PendingFrees::Waiting::Waiting(Retired what, const StreamUses& streams)
    : retired(what), points(int(streams.size()) + 1) {
  uses.reserve(streams.size());
  for (const Stream stream : streams) uses.push_back({stream, this});
}

// The heaps go too.
PendingFrees::~PendingFrees() {
  release_ = [](const Retired&) {};
  const MutexLock lock(mutex_);
  for (auto& [stream, points] : queues_) {
    for (Point& point : points) (void)arrived(point.blocks);
  }
  (void)arrived(put_off_);
  (void)arrived(stuck_);
}

// ---- Blocks come --------------------------------------------------------------------------------

void PendingFrees::add(Retired retired, const StreamUses& streams) noexcept {
  polls_in_vain_.store(0, std::memory_order_relaxed);
  Waiting* waiting = nullptr;
  try {
    waiting = new Waiting(retired, streams);
  } catch (const std::bad_alloc&) {
    return addUnknown(retired);
  }
  waiting_.fetch_add(1, std::memory_order_relaxed);
  for (Use& use : waiting->uses) {
    if (!attach(use, false)) (void)arrived(*waiting);
  }
  (void)arrived(*waiting);
}

void PendingFrees::addUnknown(Retired retired) noexcept {
  waiting_.fetch_add(1, std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  unknown_.push(*retired.block);
}

// False when all work of the stream is complete.
bool PendingFrees::attach(Use& use, bool last_resort) noexcept {
  return streams_.ask(
      use.stream, [&] { return attachToPresent(use, last_resort); },
      [&](const SharedStreamEnd& end) { return end != nullptr && attachToEnd(use, end); });
}

// Where the device does not say whether a capture takes what is recorded, one may. At the last
// resort a stream that does not tell is asked no more, and an event that cannot be had is not hoped
// for.
bool PendingFrees::attachToPresent(Use& use, bool last_resort) noexcept {
  const Result<CaptureInfo> info = device_.captureInfo(use.stream);
  const bool captured = info && info.value().status != CaptureStatus::kNone;
  if (info && !captured && record(use)) return true;
  const bool dead = !info && info.error().kind == ErrorKind::kInvalidHandle;
  const MutexLock lock(mutex_);
  (dead || (last_resort && !captured) ? stuck_ : put_off_).push(use);
  return true;
}

// Records the newest point after the free and hangs the block on it. A capture may have begun since
// the stream was asked. Then the event may be the capture's, which asking it would break, and all
// that hangs on it is put off. False when no event could be recorded.
bool PendingFrees::record(Use& use) noexcept {
  const MutexLock lock(mutex_);
  Points* const points = pointsFor(use.stream, nullptr);
  if (points == nullptr) return false;
  Point& point = points->back();
  const bool recorded = device_.recordEvent(point.event->event(), use.stream).ok();
  if (recorded) point.blocks.push(use);
  if (recorded && !streams_.answersNow(use.stream)) put_off_.append(point.blocks.takeAll());
  if (point.blocks.empty()) points->pop_back();
  return recorded;
}

// The end's event stays as it is; a stream with that handle that is met later has points of its own
// behind it.
bool PendingFrees::attachToEnd(Use& use, const SharedStreamEnd& end) noexcept {
  const MutexLock lock(mutex_);
  Points* const points = pointsFor(use.stream, end);
  (points ? points->back().blocks : stuck_).push(use);
  return true;
}

// The stream's, of which the newest is one of that end, or, where that is null, an open one. Null
// when it cannot be had.
PendingFrees::Points* PendingFrees::pointsFor(Stream stream, const SharedStreamEnd& end) noexcept {
  try {
    Points& points = queues_[stream];
    if (!points.empty() && (end ? points.back().event == end : points.back().open)) return &points;
    const Result<SharedEvent> event = end ? Result<SharedEvent>(end) : events_.take();
    if (!event) return nullptr;
    points.push_back({event.value(), {}, end == nullptr});
    return &points;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool PendingFrees::attachPutOff(bool last_resort) noexcept {
  Uses uses;
  {
    const MutexLock lock(mutex_);
    uses = put_off_.takeAll();
  }
  bool any = false;
  while (Use* use = uses.pop()) {
    if (!attach(*use, last_resort)) any |= arrived(*use->waiting);
  }
  return any;
}

// ---- Blocks leave -------------------------------------------------------------------------------

bool PendingFrees::arrived(Uses uses) noexcept {
  bool any = false;
  while (Use* use = uses.pop()) any |= arrived(*use->waiting);
  return any;
}

// True when it was the last point.
bool PendingFrees::arrived(Waiting& waiting) noexcept {
  if (waiting.points.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  const Retired retired = waiting.retired;
  delete &waiting;
  release_(retired);
  return true;
}

// The blocks of the oldest point are ready, or, where it was recorded in vain, get another.
void PendingFrees::leave(Points& points, EventPool::Answer answer, Uses& reached) noexcept {
  (answer == EventPool::Answer::kReached ? reached : put_off_).append(points.front().blocks);
  points.pop_front();
}

void PendingFrees::collect(Points& points, Uses& reached) noexcept {
  if (!points.empty()) points.back().open = false;
  while (!points.empty()) {
    const EventPool::Answer answer = events_.ask(*points.front().event);
    if (answer == EventPool::Answer::kNotYet) return;
    leave(points, answer, reached);
  }
}

bool PendingFrees::poll() noexcept {
  if (waiting() == 0) return false;
  unsigned in_vain = polls_in_vain_.load(std::memory_order_relaxed);
  // Asking an event breaks a capture elsewhere in the program unless the thread says not to mind.
  const RelaxedCaptureMode relaxed(device_);
  bool any = attachPutOff(false);
  Uses reached;
  {
    const MutexLock lock(mutex_);
    for (auto& [stream, points] : queues_) collect(points, reached);
    std::erase_if(queues_, [](const auto& queue) { return queue.second.empty(); });
  }
  any |= arrived(reached);
  const unsigned now = any ? 0 : std::min(in_vain + 1, kPollsInVain + kMostPatience);
  // A thread that has begun to wait meanwhile has set it to 0, and is not overruled.
  (void)polls_in_vain_.compare_exchange_strong(in_vain, now, std::memory_order_relaxed);
  return any;
}

// ---- Waiting ------------------------------------------------------------------------------------

// The second time is for what the first has found to be recorded in vain.
bool PendingFrees::wait() noexcept {
  const RelaxedCaptureMode relaxed(device_);
  for (int times = 0; times < 2; ++times) {
    if (attachPutOff(true) || waitForPoint() || waitForDevice()) return true;
  }
  return false;
}

// The oldest event of the first stream, in the order of handles, for which anything waits; null
// when there is none. Nobody records it again while it is waited for.
SharedEvent PendingFrees::closeOldest(Stream& from) noexcept {
  const MutexLock lock(mutex_);
  auto it = queues_.lower_bound(from);
  while (it != queues_.end() && it->second.empty()) ++it;
  if (it == queues_.end()) return nullptr;
  from = it->first;
  it->second.back().open = false;
  return it->second.front().event;
}

// True when a block was released, maybe by another thread that has polled meanwhile.
bool PendingFrees::leaveWaitedFor(Stream stream, const SharedEvent& event,
                                  EventPool::Answer answer) noexcept {
  Uses reached;
  {
    const MutexLock lock(mutex_);
    const auto it = queues_.find(stream);
    if (it == queues_.end() || it->second.empty() || it->second.front().event != event) return true;
    leave(it->second, answer, reached);
  }
  return arrived(reached);
}

// Others may attach and poll meanwhile. A stream whose event cannot be waited for is passed over.
bool PendingFrees::waitForPoint() noexcept {
  Stream from{};
  while (const SharedEvent event = closeOldest(from)) {
    const EventPool::Answer answer = events_.waitFor(*event);
    if (answer == EventPool::Answer::kNotYet) {
      ++from.raw;
    } else if (leaveWaitedFor(from, event, answer)) {
      return true;
    }
  }
  return false;
}

// What hangs on no event is ready when all work of the device is complete.
bool PendingFrees::waitForDevice() noexcept {
  Uses stuck;
  RetiredBlocks unknown;
  {
    const MutexLock lock(mutex_);
    stuck = stuck_.takeAll();
    unknown = unknown_.takeAll();
  }
  if (stuck.empty() && unknown.empty()) return false;
  if (!device_.synchronizeDevice()) {
    const MutexLock lock(mutex_);
    stuck_.append(stuck);
    unknown_.append(unknown);
    return false;
  }
  bool any = arrived(stuck);
  while (Block* block = unknown.pop()) {
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    release_({segmentOf(*block).heap.load(std::memory_order_relaxed), block, true, true});
    any = true;
  }
  return any;
}

void PendingFrees::waitForStuck() noexcept {
  if (waiting() == 0) return;
  const RelaxedCaptureMode relaxed(device_);
  (void)waitForDevice();
}

}  // namespace cistern
