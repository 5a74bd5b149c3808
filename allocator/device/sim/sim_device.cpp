// All but the device calls: making the device, queueing work, time, and the beginning of every
// call. See sim_device.hpp.
#include "allocator/device/sim/sim_device.hpp"

#include <algorithm>
#include <new>

#include <fmt/format.h>

#include "allocator/base/check.hpp"
#include "allocator/device/sim/costs.hpp"

namespace cistern::sim {

SimDevice::SimDevice(SimConfig config)
    : config_(std::move(config)),
      space_(config_.ordinal),
      memory_(space_, config_.capacity, config_.host_page_capacity, config_.granularity),
      detector_(config_.race_detector),
      next_handle_((space_.number() << 32) + kPerThreadStream.raw + 1) {
  streams_.emplace(Stream{}.raw, StreamState{0, detector_.openLane()});
}

SimDevice::~SimDevice() {
  if (made_.isHere()) return;
  SimConfig fresh;
  fresh.ordinal = config_.ordinal;  // which now has a space for it
  space_.leave();
  new (this) SimDevice(std::move(fresh));
}

VirtualMemoryCapability SimDevice::virtualMemory() const {
  if (!config_.virtual_memory) return {};
  VirtualMemoryCapability pages{true, config_.granularity, true, config_.fabric};
  pages.host_pages = true;
  return pages;
}

// ---- What every call begins with ---------------------------------------------------------------

Status SimDevice::enter(Call call, std::uint64_t cost) {
  clock_.charge(cost);
  runEffects();
  if (const auto fault = faults_.next(call)) {
    return refusal(call, reasonOf(*fault), "planned fault");
  }
  return {};
}

Status SimDevice::enterUnsafe(Call call, std::uint64_t cost) {
  Status entered = enter(call, cost);
  if (!entered.ok() || !captures_.forbidUnsafeCall()) return entered;
  return refusal(
      call, Reason::kCaptureUnsupported,
      fmt::format("{} may wait for the device, which a capture forbids", callName(call)));
}

Status SimDevice::enterVirtual(Call call, std::uint64_t cost) {
  if (!config_.virtual_memory) return refusal(call, Reason::kNotSupported, "no virtual memory");
  return enter(call, cost);
}

// ---- Queueing ----------------------------------------------------------------------------------

Status SimDevice::launch(Stream stream, Work work) {
  MutexLock lock(mutex_);
  clock_.advance(cost::kLaunch);  // the program's own call, so on no account
  runEffects();
  return submit(Call::kLaunchGraph, stream, std::move(work));
}

Status SimDevice::doCopy(Address to, Address from, std::size_t bytes, Stream stream) {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kCopy, cost::kCopy); !in.ok()) return in;
  if (bytes == 0) return {};
  const Effect effect = [=](MemoryView& memory) {
    for (std::uint64_t done = 0; done < bytes;) {
      const MemoryView::Bytes piece = memory.at(from + done, bytes - done);
      memory.write(to + done, piece.data, piece.size);
      done += piece.size;
    }
  };
  return submit(Call::kCopy, stream,
                {"copy",
                 {{from, bytes, AccessKind::kRead}, {to, bytes, AccessKind::kWrite}},
                 cost::copying(bytes),
                 effect});
}

Status SimDevice::submit(Call call, Stream stream, Work work) {
  StreamState* state = find(stream);
  if (state == nullptr) return checkStream(call, stream);
  const auto recording = capturing(call, stream);
  if (!recording.ok()) return recording.error();
  if (recording.value()) {
    captures_.append(stream, std::make_shared<const Work>(std::move(work)));
    return {};
  }
  scratch_.clear();
  if (Status found = resolve(call, work, stream, scratch_); !found.ok()) return found;
  queue(*state, stream, std::move(work), scratch_);
  return {};
}

Status SimDevice::resolve(Call call, const Work& work, Stream stream, std::vector<Span>& spans) {
  if (!needsMemory(work)) return {};
  std::string why;
  for (const Access& access : work.accesses) {
    if (memory_.resolve(access, spans, why)) continue;
    detector_.reportIllegal(work.name, stream, access, why);
    return refusal(call, Reason::kIllegalAddress, fmt::format("'{}': {}", work.name, why));
  }
  return {};
}

std::uint64_t SimDevice::durationOf(const Work& work, const std::vector<Span>& spans) {
  std::uint64_t host = 0;
  for (const Span& span : spans) host += span.backing->isHost() ? span.bytes : 0;
  return later(work.duration_ns, cost::overTheBus(host));
}

void SimDevice::queue(StreamState& state, Stream stream, Work work, std::vector<Span>& spans) {
  const std::uint64_t completion = enqueue(state, durationOf(work, spans));
  if (detector_.enabled()) {
    detector_.run(state.lane, std::make_shared<const WorkTag>(WorkTag{work.name, stream}), spans);
  }
  if (!work.effect || completion == kNever) return;
  effects_.add(completion, std::make_shared<const Work>(std::move(work)), std::move(spans));
}

std::uint64_t SimDevice::enqueue(StreamState& stream, std::uint64_t duration) {
  const std::uint64_t start = std::max(clock_.now() + config_.gpu_lag_ns, stream.tail);
  stream.tail = later(start, duration);
  device_tail_ = std::max(device_tail_, stream.tail);
  return stream.tail;
}

// ---- Time --------------------------------------------------------------------------------------

std::uint64_t SimDevice::now() const {
  MutexLock lock(mutex_);
  return clock_.now();
}

void SimDevice::advanceHost(std::uint64_t nanoseconds) {
  MutexLock lock(mutex_);
  clock_.advance(nanoseconds);
  runEffects();
}

std::uint64_t SimDevice::modelledNanoseconds() const {
  MutexLock lock(mutex_);
  return clock_.foreground();
}

std::uint64_t SimDevice::modelledBackgroundNanoseconds() const {
  MutexLock lock(mutex_);
  return clock_.background();
}

Status SimDevice::waitUntil(Call call, std::uint64_t completion) {
  if (completion == kNever) {
    return refusal(call, Reason::kWouldWaitForever, "work that it waits for never ends");
  }
  clock_.advanceTo(completion);
  runEffects();
  return {};
}

Status SimDevice::waitForAll(Call call) {
  Status waited = waitUntil(call, device_tail_);
  if (waited.ok()) detector_.observeAll();
  return waited;
}

void SimDevice::runEffects() { effects_.runUntil(clock_.now()); }

// ---- Trouble -----------------------------------------------------------------------------------

std::uint64_t SimDevice::foreignUse(std::uint64_t bytes) {
  MutexLock lock(mutex_);
  return memory_.foreignUse(bytes);
}

bool SimDevice::peerReaches(int ordinal, Address address, std::uint64_t bytes) const {
  if (ordinal < 0 || ordinal > 7) return false;
  MutexLock lock(mutex_);
  return memory_.peerReaches(ordinal, address, bytes);
}

std::uint64_t SimDevice::callsOnDeadStreams() const {
  MutexLock lock(mutex_);
  return dead_calls_;
}

std::vector<RaceReport> SimDevice::races() const {
  MutexLock lock(mutex_);
  return detector_.reports();
}

void SimDevice::clearRaces() {
  MutexLock lock(mutex_);
  detector_.clearReports();
}

void SimDevice::audit() const {
  MutexLock lock(mutex_);
  memory_.audit();
  captures_.audit();
  detector_.audit();
  CISTERN_CHECK(clock_.foreground() <= clock_.now());
  CISTERN_CHECK(streams_.contains(Stream{}.raw));
  for (const auto& [raw, stream] : streams_) {
    CISTERN_CHECK(raw < next_handle_ && stream.tail <= device_tail_);
  }
  for (const auto& [raw, event] : events_) {
    CISTERN_CHECK(raw < next_handle_ && event.completion <= device_tail_);
  }
}

}  // namespace cistern::sim
