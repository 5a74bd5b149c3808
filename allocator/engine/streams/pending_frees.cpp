#include "allocator/engine/streams/pending_frees.hpp"

#include <algorithm>
#include <new>

namespace cistern {

// One fence more than there are streams, until all are attached: a poll in between must not take
// the first for the last.
PendingFrees::Waiting::Waiting(Pending what, const StreamUses& streams)
    : pending(what), fences(int(streams.size()) + 1) {
  uses.reserve(streams.size());
  for (const Stream stream : streams) uses.push_back({stream, this});
}

// The heaps go too.
PendingFrees::~PendingFrees() {
  release_ = [](const Pending&) {};
  const MutexLock lock(mutex_);
  for (auto& [stream, fences] : queues_) {
    for (Fence& fence : fences) (void)arrived(fence.blocks);
  }
  (void)arrived(put_off_);
  (void)arrived(stuck_);
}

// ---- Blocks come --------------------------------------------------------------------------------

void PendingFrees::add(Pending pending, const StreamUses& streams) noexcept {
  polls_in_vain_.store(0, std::memory_order_relaxed);
  Waiting* waiting = nullptr;
  try {
    waiting = new Waiting(pending, streams);
  } catch (const std::bad_alloc&) {
    return addUnknown(*pending.block);
  }
  waiting_.fetch_add(1, std::memory_order_relaxed);
  for (Use& use : waiting->uses) {
    if (!attach(use, false)) (void)arrived(*waiting);
  }
  (void)arrived(*waiting);
}

void PendingFrees::addUnknown(Block& block) noexcept {
  waiting_.fetch_add(1, std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  unknown_.push(block);
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

// Records the newest fence after the free and hangs the block on it. A capture may have begun since
// the stream was asked. Then the event may be the capture's, which asking it would break, and all
// that hangs on it is put off. False when no event could be recorded.
bool PendingFrees::record(Use& use) noexcept {
  const MutexLock lock(mutex_);
  Fences* const fences = fencesFor(use.stream, nullptr);
  if (fences == nullptr) return false;
  Fence& fence = fences->back();
  const bool recorded = device_.recordEvent(fence.event->event(), use.stream).ok();
  if (recorded) fence.blocks.push(use);
  if (recorded && !streams_.answersNow(use.stream)) put_off_.append(fence.blocks.takeAll());
  if (fence.blocks.empty()) fences->pop_back();
  return recorded;
}

// The end's event stays as it is; a stream with that handle that is met later has fences of its own
// behind it.
bool PendingFrees::attachToEnd(Use& use, const SharedStreamEnd& end) noexcept {
  const MutexLock lock(mutex_);
  Fences* const fences = fencesFor(use.stream, end);
  (fences ? fences->back().blocks : stuck_).push(use);
  return true;
}

// The stream's, of which the newest is one of that end, or, where that is null, an open one. Null
// when it cannot be had.
PendingFrees::Fences* PendingFrees::fencesFor(Stream stream, const SharedStreamEnd& end) noexcept {
  try {
    Fences& fences = queues_[stream];
    if (!fences.empty() && (end ? fences.back().event == end : fences.back().open)) return &fences;
    const Result<SharedEvent> event = end ? Result<SharedEvent>(end) : events_.take();
    if (!event) return nullptr;
    fences.push_back({event.value(), {}, end == nullptr});
    return &fences;
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

// True when it was the last fence.
bool PendingFrees::arrived(Waiting& waiting) noexcept {
  if (waiting.fences.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  const Pending pending = waiting.pending;
  delete &waiting;
  release_(pending);
  return true;
}

// The blocks of the oldest fence are ready, or, where it was recorded in vain, get another.
void PendingFrees::leave(Fences& fences, EventPool::Answer answer, Uses& reached) noexcept {
  (answer == EventPool::Answer::kReached ? reached : put_off_).append(fences.front().blocks);
  fences.pop_front();
}

void PendingFrees::collect(Fences& fences, Uses& reached) noexcept {
  if (!fences.empty()) fences.back().open = false;
  while (!fences.empty()) {
    const EventPool::Answer answer = events_.ask(*fences.front().event);
    if (answer == EventPool::Answer::kNotYet) return;
    leave(fences, answer, reached);
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
    for (auto& [stream, fences] : queues_) collect(fences, reached);
    std::erase_if(queues_, [](const auto& queue) { return queue.second.empty(); });
  }
  any |= arrived(reached);
  const unsigned now = any ? 0 : std::min(in_vain + 1, kPollsInVain + kMostBackoff);
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
  PendingBlocks unknown;
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
    release_({block, true, true});
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
