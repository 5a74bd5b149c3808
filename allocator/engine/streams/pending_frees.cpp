#include "allocator/engine/streams/pending_frees.hpp"

#include <algorithm>
#include <new>

namespace cistern {

// ---- Blocks come --------------------------------------------------------------------------------

// What makes the record whose end releases the block is the last that may fail.
void PendingFrees::add(Pending pending, const StreamUses& streams) noexcept {
  polls_in_vain_.store(0, std::memory_order_relaxed);
  if (streams.unknown()) return addUnknown(*pending.block);
  Uses uses;
  try {
    for (const Stream stream : streams) uses.push_back({stream, nullptr});
    const auto block = std::make_shared<Waiting>(*this, pending);
    for (Use& use : uses) use.block = block;
  } catch (const std::bad_alloc&) {
    return addUnknown(*pending.block);
  }
  attach(std::move(uses), false);
}

// Where all work of a stream is complete, the use of it ends here.
void PendingFrees::attach(Uses uses, bool last_resort) noexcept {
  while (!uses.empty()) {
    Uses one;
    one.splice(one.end(), uses, uses.begin());
    const KnownStreams::Look at = streams_.look(one.front().stream);
    one.front().event = at.end;
    if (at.gone && at.end != nullptr) enqueue(one, true);
    if (!at.gone) attachToPresent(one, last_resort);
  }
}

// Where the device does not say whether a capture takes what is recorded, one may. At the last
// resort a stream that does not tell is asked no more, and an event that cannot be had is not hoped
// for. A capture may have begun since the stream was asked. Then the event may be the capture's,
// which asking it would break.
void PendingFrees::attachToPresent(Uses& one, bool last_resort) noexcept {
  const Stream stream = one.front().stream;
  const Result<CaptureInfo> info = device_.captureInfo(stream);
  const bool captured = info && info.value().status != CaptureStatus::kNone;
  bool recorded = false;
  if (info && !captured) {
    const Result<SharedEvent> event = events_.take();
    recorded = event && device_.recordEvent(*event.value(), stream).ok();
    if (recorded && streams_.answersNow(stream)) one.front().event = event.value();
  }
  const bool dead = !info && info.error().kind == ErrorKind::kInvalidHandle;
  enqueue(one, dead || (last_resort && !captured && !recorded));
}

// Among its stream's where it has an event, and the host memory for that; else it is stuck, or put
// off.
void PendingFrees::enqueue(Uses& one, bool hopeless) noexcept {
  const MutexLock lock(mutex_);
  Uses* queue = hopeless ? &stuck_ : &put_off_;
  try {
    if (one.front().event != nullptr) queue = &queues_[one.front().stream];
  } catch (const std::bad_alloc&) {
    one.front().event = nullptr;
  }
  queue->splice(queue->end(), one);
}

void PendingFrees::attachPutOff(bool last_resort) noexcept {
  Uses uses;
  {
    const MutexLock lock(mutex_);
    uses.swap(put_off_);
  }
  attach(std::move(uses), last_resort);
}

// ---- Blocks leave -------------------------------------------------------------------------------

// It counts as waiting until it is back: where none counts, there is none to wait for.
void PendingFrees::release(const Pending& pending) noexcept {
  release_(pending);
  released_.fetch_add(1);
  waiting_.fetch_sub(1);
}

// The oldest use is over, or, where its event was recorded in vain, gets another.
void PendingFrees::leave(Uses& queue, EventPool::Answer answer, Uses& reached) noexcept {
  const bool over = answer == EventPool::Answer::kReached;
  if (!over) queue.front().event = nullptr;
  Uses& to = over ? reached : put_off_;
  to.splice(to.end(), queue, queue.begin());
}

bool PendingFrees::poll() noexcept {
  if (waiting() == 0) return false;
  unsigned in_vain = polls_in_vain_.load(std::memory_order_relaxed);
  const std::uint64_t before = released_;
  // Asking an event breaks a capture elsewhere in the program unless the thread says not to mind.
  const RelaxedCaptureMode relaxed(device_);
  const MutexLock polling(polling_);
  attachPutOff(false);
  {
    Uses reached;  // they end when the lock is given up
    const MutexLock lock(mutex_);
    for (auto& [stream, queue] : queues_) {
      while (!queue.empty()) {
        const EventPool::Answer answer = events_.ask(*queue.front().event);
        if (answer == EventPool::Answer::kNotYet) break;
        leave(queue, answer, reached);
      }
    }
    std::erase_if(queues_, [](const auto& queue) { return queue.second.empty(); });
  }
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
    attachPutOff(true);
    waitForEvents(before);
    if (released_ == before) waitForDevice();
  }
  const MutexLock polled(polling_);  // what another thread is about to release is released
  return released_ != before;
}

// The oldest event of the first stream, in the order of handles, for which anything waits; null
// when there is none.
SharedEvent PendingFrees::oldest(Stream& from) noexcept {
  const MutexLock lock(mutex_);
  auto it = queues_.lower_bound(from);
  while (it != queues_.end() && it->second.empty()) ++it;
  if (it == queues_.end()) return nullptr;
  from = it->first;
  return it->second.front().event;
}

// Until a block is released. Others may attach and poll meanwhile. A stream whose event cannot be
// waited for is passed over.
void PendingFrees::waitForEvents(std::uint64_t released_before) noexcept {
  Stream from{};
  while (released_ == released_before) {
    const SharedEvent event = oldest(from);
    if (event == nullptr) return;
    const EventPool::Answer answer = events_.waitFor(*event);
    if (answer == EventPool::Answer::kNotYet) {
      ++from.raw;
      continue;
    }
    Uses reached;
    const MutexLock lock(mutex_);
    const auto it = queues_.find(from);
    const bool still = it != queues_.end() && !it->second.empty();
    if (still && it->second.front().event == event) leave(it->second, answer, reached);
  }
}

// What hangs on no event is ready when all work of the device is complete.
void PendingFrees::waitForDevice() noexcept {
  Uses stuck;
  PendingBlocks unknown;
  {
    const MutexLock lock(mutex_);
    stuck.swap(stuck_);
    unknown = std::exchange(unknown_, {});
  }
  if (stuck.empty() && unknown.empty()) return;
  if (!device_.synchronizeDevice()) {
    const MutexLock lock(mutex_);
    stuck_.splice(stuck_.end(), stuck);
    while (Block* block = unknown.pop()) unknown_.push(*block);
    return;
  }
  while (Block* block = unknown.pop()) release({block, true, true});
}

}  // namespace cistern
