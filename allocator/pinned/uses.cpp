#include "allocator/pinned/uses.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "allocator/base/check.hpp"
#include "allocator/base/process.hpp"
#include "cistern/error.hpp"

namespace cistern {
namespace {

// Whether events may be recorded there. What cannot be asked now may be asked later, as the default
// stream while others are captured.
bool answersNow(Device& device, Stream stream) noexcept {
  const Result<CaptureInfo> info = device.captureInfo(stream);
  return info.ok() && info.value().status == CaptureStatus::kNone;
}

bool isGone(const DeviceError& error) noexcept { return error.kind == ErrorKind::kInvalidHandle; }

}  // namespace

PinnedUses::~PinnedUses() {
  if (!driverMayBeCalled()) return;
  const auto destroy = [](Device& device, const std::list<Use>& uses) {
    for (const Use& use : uses) (void)device.destroyEvent(use.event);
  };
  for (const auto& [device, uses] : spare_) destroy(*device, uses);
  for (const Queue& queue : queues_) {
    destroy(*queue.device, queue.held);
    destroy(*queue.device, queue.waiting);
  }
}

PinnedUses::Queue* PinnedUses::find(Stream stream, const Device& device) noexcept {
  const auto it = std::ranges::find_if(queues_, [&](const Queue& queue) {
    return queue.stream == stream && queue.device == &device && !queue.gone;
  });
  return it == queues_.end() ? nullptr : &*it;
}

PinnedUses::Queue& PinnedUses::queueOf(Stream stream, Device& device) {
  if (Queue* const there = find(stream, device)) return *there;
  const Result<CaptureInfo> info = device.captureInfo(stream);
  if (!info && isGone(info.error())) {
    throw InvalidArgument(fmt::format("stream {:#x} is not a live stream of {} device {} ({})",
                                      stream.raw, device.backend(), device.ordinal(),
                                      info.error().name));
  }
  (void)spare_[&device];  // so that finish finds it
  queues_.push_front({&device, stream, false, {}, {}});
  return queues_.front();
}

void PinnedUses::add(Block& block, Stream stream, Device& device) {
  for (const Use* use = first(block); use != nullptr; use = use->next) {
    const Queue& queue = *use->queue;
    if (queue.stream == stream && queue.device == &device && !queue.gone) return;
  }
  Queue& queue = queueOf(stream, device);
  std::list<Use>& spare = spare_.find(&device)->second;
  if (spare.empty()) {
    std::list<Use> made(1);
    made.front().event = device.createEvent().orThrow();
    spare.splice(spare.begin(), made);
  }
  Use& use = spare.front();
  use = {&block, &queue, first(block), use.event, State::kHeld, spare.begin()};
  queue.held.splice(queue.held.begin(), spare, spare.begin());
  block.use.uses = &use;
}

// A capture may begin between any two calls, so the stream is asked again: an event that a capture
// has got says nothing.
void PinnedUses::record(Use& use) noexcept {
  Device& device = *use.queue->device;
  const Stream stream = use.queue->stream;
  const Result<CaptureInfo> before = device.captureInfo(stream);
  if (!before && isGone(before.error())) {
    use.state = State::kLost;
  } else if (before && before.value().status == CaptureStatus::kNone &&
             device.recordEvent(use.event, stream) && answersNow(device, stream)) {
    use.state = State::kRecorded;
  } else {
    use.state = State::kUnrecorded;
  }
}

void PinnedUses::forget(Stream stream, Device& device) {
  Queue* const queue = find(stream, device);
  if (queue == nullptr) return;
  if (!answersNow(device, stream)) {
    throw InvalidArgument(
        fmt::format("stream {:#x} cannot be forgotten: it is being captured", stream.raw));
  }
  // All of them first, so that a failure has changed nothing: a later record only moves a point on.
  for (auto* const uses : {&queue->held, &queue->waiting}) {
    for (const Use& use : *uses) {
      if (use.state != State::kRecorded) device.recordEvent(use.event, stream).orThrow();
    }
  }
  for (auto* const uses : {&queue->held, &queue->waiting}) {
    for (Use& use : *uses) use.state = State::kRecorded;
  }
  queue->gone = true;
}

void PinnedUses::end(Block& block) noexcept {
  for (Use* use = first(block); use != nullptr; use = use->next) {
    Queue& queue = *use->queue;
    if (use->state == State::kHeld) record(*use);
    queue.waiting.splice(queue.waiting.end(), queue.held, use->self);
    ++waiting_;
  }
}

bool PinnedUses::isOver(Use& use) noexcept {
  if (use.state == State::kUnrecorded) record(use);
  if (use.state != State::kRecorded) return use.state == State::kOver;
  Device& device = *use.queue->device;
  const RelaxedCaptureMode relaxed(device);
  const Result<bool> reached = device.queryEvent(use.event);
  if (reached) return reached.value();
  // A capture got the record all the same, between two looks at the stream.
  if (reached.error().kind == ErrorKind::kCaptureForbidden && !use.queue->gone)
    use.state = State::kUnrecorded;
  return false;
}

Block* PinnedUses::pollOne() noexcept {
  if (waiting_ == 0) return nullptr;
  for (auto queue = queues_.begin(); queue != queues_.end();) {
    while (!queue->waiting.empty() && isOver(queue->waiting.front())) {
      if (Block* const ready = finish(queue->waiting.front())) return ready;
    }
    queue = queue->waiting.empty() && queue->held.empty() ? queues_.erase(queue) : std::next(queue);
  }
  return nullptr;
}

Block* PinnedUses::finish(Use& use) noexcept {
  Block& block = *use.block;
  Use* before = first(block);
  if (before == &use) {
    block.use.uses = use.next;
  } else {
    while (before->next != &use) before = before->next;
    before->next = use.next;
  }
  std::list<Use>& spare = spare_.find(use.queue->device)->second;
  spare.splice(spare.begin(), use.queue->waiting, use.self);
  --waiting_;
  ++over_;
  return any(block) ? nullptr : &block;
}

PinnedUses::Point PinnedUses::oldest(std::size_t nth) const noexcept {
  for (const Queue& queue : queues_) {
    if (queue.waiting.empty() || queue.waiting.front().state != State::kRecorded) continue;
    if (nth-- == 0) return {queue.device, queue.waiting.front().event};
  }
  return {};
}

void PinnedUses::audit() const {
  std::size_t waiting = 0;
  for (const Queue& queue : queues_) {
    waiting += queue.waiting.size();
    for (const Use& use : queue.held) {
      CISTERN_CHECK(use.queue == &queue && use.block->state() == BlockState::kAllocated);
      CISTERN_CHECK(use.state == (queue.gone ? State::kRecorded : State::kHeld));
    }
    for (const Use& use : queue.waiting) {
      CISTERN_CHECK(use.queue == &queue && use.block->state() == BlockState::kPending);
      CISTERN_CHECK(use.state != State::kHeld);
    }
  }
  CISTERN_CHECK(waiting == waiting_);
}

}  // namespace cistern
