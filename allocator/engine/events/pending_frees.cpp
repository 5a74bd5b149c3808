#include "allocator/engine/events/pending_frees.hpp"

#include <algorithm>
#include <new>

namespace cistern {

// ---- Blocks come --------------------------------------------------------------------------------

void PendingFrees::add(Pending pending, const StreamUses& streams) noexcept {
  if (streams.unknown()) return addUnknown(*pending.block);
  try {
    add(pending, Fence(streams));
  } catch (const std::bad_alloc&) {
    addUnknown(*pending.block);
  }
}

void PendingFrees::add(Pending pending, Fence fence) noexcept {
  polls_in_vain_.store(0, std::memory_order_relaxed);
  waiting_.fetch_add(1, std::memory_order_relaxed);
  fence.of_->pending = std::move(pending);
  fence.of_->in = this;
  fence.of_ = nullptr;  // from now on the uses alone keep it
  while (!fence.uses_.empty()) {
    Uses one;
    one.splice(one.end(), fence.uses_, fence.uses_.begin());
    attach(one, false);
  }
}

// If all work of a stream is complete, the uses of it are over.
void PendingFrees::attach(Uses& uses, bool last_resort) noexcept {
  const KnownStreams::Look at = streams_.look(uses.front().stream);
  uses.front().event = at.end;
  if (at.forgotten && at.end != nullptr) enqueue(uses, true);
  if (!at.forgotten) attachToPresent(uses, last_resort);
}

// If the device does not say whether a capture takes what is recorded, one may. At the last resort
// a stream that does not tell is asked no more, and an event that cannot be had is not hoped for.
void PendingFrees::attachToPresent(Uses& uses, bool last_resort) noexcept {
  const Stream stream = uses.front().stream;
  const Result<CaptureInfo> info = device_.captureInfo(stream);
  if (info && info.value().status != CaptureStatus::kNone) return enqueue(uses, false);
  const Result<SharedEvent> event = info ? streams_.eventBehind(stream) : info.error();
  if (event) uses.front().event = event.value();
  const bool dead = !info && isGone(info.error());
  enqueue(uses, dead || (last_resort && !event));
}

// If the host has no memory for a queue, the uses wait for the whole device.
void PendingFrees::enqueue(Uses& uses, bool hopeless) noexcept {
  const MutexLock lock(mutex_);
  const bool waits = uses.front().event != nullptr;
  Uses* to = &stuck_;
  try {
    if (waits || !hopeless) {
      Queue& queue = queues_[uses.front().stream];
      to = waits ? &queue.waiting : &queue.put_off;
    }
  } catch (const std::bad_alloc&) {
    uses.front().event = nullptr;
  }
  to->splice(to->end(), uses);
}

// At the last resort. Uses that are over end. No poll has any in hand meanwhile.
void PendingFrees::attachPutOff() noexcept {
  const MutexLock polling(polling_);
  for (Stream from{};; ++from.raw) {
    Uses uses;
    {
      const MutexLock lock(mutex_);
      auto it = queues_.lower_bound(from);
      while (it != queues_.end() && it->second.put_off.empty()) ++it;
      if (it == queues_.end()) return;
      from = it->first;
      uses.swap(it->second.put_off);
    }
    attach(uses, true);
  }
}

// ---- Blocks leave -------------------------------------------------------------------------------

// It counts as waiting until it is released: if none counts, there is nothing to wait for.
void PendingFrees::release(Pending& pending) noexcept {
  release_(pending);
  pending.kept = nullptr;
  released_.fetch_add(1);
  waiting_.fetch_sub(1);
}

// The oldest use is over. If its event was recorded in vain, it gets another, and so do those that
// wait for the same.
void PendingFrees::leave(Queue& queue, SpareEvents::Answer answer, Uses& reached) noexcept {
  Uses& waiting = queue.waiting;
  if (answer == SpareEvents::Answer::kReached)
    return reached.splice(reached.end(), waiting, waiting.begin());
  waiting.front().event = nullptr;
  auto last = std::next(waiting.begin());
  while (last != waiting.end() && last->event == nullptr) ++last;
  queue.put_off.splice(queue.put_off.end(), waiting, waiting.begin(), last);
}

void PendingFrees::leaveReached(Queue& queue, Budget& most, Uses& reached) noexcept {
  SharedEvent complete;
  for (; !queue.waiting.empty() && most.ended > 0; --most.ended) {
    const SharedEvent event = queue.waiting.front().event;
    SpareEvents::Answer answer = SpareEvents::Answer::kReached;
    if (event != nullptr && event != complete) {
      if (most.asked == 0) return;
      --most.asked;
      answer = events_.ask(*event);
      if (answer == SpareEvents::Answer::kNotYet) return;
      if (answer == SpareEvents::Answer::kReached) complete = event;
    }
    leave(queue, answer, reached);
  }
}

// One stream, whose uses end when the lock is given up.
void PendingFrees::pollNext(Budget& most) noexcept {
  Stream stream;
  Uses put_off, reached;
  {
    const MutexLock lock(mutex_);
    if (queues_.empty()) return;
    auto it = queues_.lower_bound(next_);
    if (it == queues_.end()) it = queues_.begin();
    stream = it->first;
    next_.raw = stream.raw + 1;
    put_off.swap(it->second.put_off);
  }
  if (!put_off.empty()) {
    --most.asked;
    attach(put_off, false);
  }
  const MutexLock lock(mutex_);
  const auto it = queues_.find(stream);
  it->second.waiting.splice(it->second.waiting.end(), put_off);  // those that are over
  leaveReached(it->second, most, reached);
  if (it->second.waiting.empty() && it->second.put_off.empty()) queues_.erase(it);
}

bool PendingFrees::poll(Budget most) noexcept {
  if (waiting() == 0) return false;
  unsigned in_vain = polls_in_vain_.load(std::memory_order_relaxed);
  const std::uint64_t before = released_;
  // Asking an event breaks a capture elsewhere in the program unless the thread says not to mind.
  const RelaxedCaptureMode relaxed(device_);
  const MutexLock polling(polling_);
  for (std::size_t left = streamsWaitedFor(); left > 0 && most.asked > 0 && most.ended > 0; --left)
    pollNext(most);
  const bool any = released_ != before;
  const unsigned now = any ? 0 : std::min(in_vain + 1, kPollsInVain + kMostBackoff);
  // A thread that has begun to wait meanwhile has set it to 0, and is not overruled.
  (void)polls_in_vain_.compare_exchange_strong(in_vain, now, std::memory_order_relaxed);
  return any;
}

// ---- Waiting ------------------------------------------------------------------------------------

// The second time is for what the first has found to be recorded in vain.
bool PendingFrees::wait() noexcept {
  const RelaxedCaptureMode relaxed(device_);
  const std::uint64_t before = released_;
  for (int times = 0; times < 2 && released_ == before; ++times) {
    attachPutOff();
    waitForEvents(before);
    if (released_ == before) (void)waitForDevice();
  }
  const MutexLock polled(polling_);  // what another thread is about to release is released
  return released_ != before;
}

// The oldest event of the first stream, in the order of handles, for which anything waits; null
// inside if that is over.
std::optional<SharedEvent> PendingFrees::oldest(Stream& from) noexcept {
  const MutexLock lock(mutex_);
  auto it = queues_.lower_bound(from);
  while (it != queues_.end() && it->second.waiting.empty()) ++it;
  if (it == queues_.end()) return std::nullopt;
  from = it->first;
  return it->second.waiting.front().event;
}

// Waits until a block is released. Others may attach and poll meanwhile. A stream whose event
// cannot be waited for is passed over.
void PendingFrees::waitForEvents(std::uint64_t released_before) noexcept {
  Stream from{};
  while (released_ == released_before) {
    const std::optional<SharedEvent> event = oldest(from);
    if (!event) return;
    const SpareEvents::Answer answer =
        *event ? events_.waitFor(**event) : SpareEvents::Answer::kReached;
    if (answer == SpareEvents::Answer::kNotYet) {
      ++from.raw;
      continue;
    }
    Uses reached;
    const MutexLock lock(mutex_);
    const auto it = queues_.find(from);
    const bool still = it != queues_.end() && !it->second.waiting.empty();
    if (still && it->second.waiting.front().event == *event) leave(it->second, answer, reached);
  }
}

// Blocks that wait for no event are ready when all work of the device is complete. False if no
// block does.
bool PendingFrees::waitForDevice() noexcept {
  Uses stuck;
  PendingBlocks unknown;
  {
    const MutexLock lock(mutex_);
    stuck.swap(stuck_);
    unknown = std::exchange(unknown_, {});
  }
  if (stuck.empty() && unknown.empty()) return false;
  if (!device_.synchronizeDevice()) {
    const MutexLock lock(mutex_);
    stuck_.splice(stuck_.end(), stuck);
    while (Block* block = unknown.pop()) unknown_.push(*block);
    return true;
  }
  while (Block* block = unknown.pop()) {
    Pending pending{block, true, true};
    release(pending);
  }
  return true;
}

// Uses do not end under a lock.
void PendingFrees::drop() noexcept {
  release_ = [](const Pending&) {};
  std::map<Stream, Queue> queues;
  Uses stuck;
  const MutexLock lock(mutex_);
  queues.swap(queues_);
  stuck.swap(stuck_);
}

}  // namespace cistern
