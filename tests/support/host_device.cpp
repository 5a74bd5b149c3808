#include "tests/support/host_device.hpp"

#include <cstring>
#include <memory>

#include "allocator/device/backends.hpp"

namespace cistern::test {
namespace {

DeviceError hostError(Call call, ErrorKind kind, const char* name) {
  return {call, kind, 1, name, {}};
}

DeviceError noSuchStream(Call call) {
  return hostError(call, ErrorKind::kInvalidHandle, "no such stream");
}

DeviceError noSuchEvent(Call call) {
  return hostError(call, ErrorKind::kInvalidHandle, "no such event");
}

}  // namespace

HostDevice::~HostDevice() {
  for (const auto& [address, memory] : memory_)
    ::operator delete(toPointer(address), memory.alignment);
  for (const auto& [pointer, memory] : pinned_) ::operator delete(pointer, memory.alignment);
}

// ---- Memory ------------------------------------------------------------------------------------

Result<Address> HostDevice::doMalloc(std::size_t bytes) {
  MutexLock lock(mutex_);
  const auto alignment = std::align_val_t(bytes >= 2 * kMiB ? 2 * kMiB : 512);
  void* const memory =
      bytes <= kCapacity - used_ ? ::operator new(bytes, alignment, std::nothrow) : nullptr;
  if (memory == nullptr) return hostError(Call::kMalloc, ErrorKind::kOutOfMemory, "out of memory");
  memory_[toAddress(memory)] = {bytes, alignment};
  used_ += bytes;
  return toAddress(memory);
}

Status HostDevice::doFree(Address address) {
  MutexLock lock(mutex_);
  const auto it = memory_.find(address);
  if (it == memory_.end()) return hostError(Call::kFree, ErrorKind::kInvalidValue, "not allocated");
  reachAll();
  ::operator delete(toPointer(address), it->second.alignment);
  used_ -= it->second.bytes;
  memory_.erase(it);
  return {};
}

Result<MemoryInfo> HostDevice::doMemoryInfo() {
  MutexLock lock(mutex_);
  return MemoryInfo{kCapacity - used_, kCapacity};
}

Status HostDevice::doCopy(Address to, Address from, std::size_t bytes, Stream stream) {
  MutexLock lock(mutex_);
  const auto move = [=] { std::memcpy(toPointer(to), toPointer(from), bytes); };
  return queue(Call::kCopy, stream, {move, When::kAtOnce, {}});
}

Result<void*> HostDevice::doHostMalloc(std::size_t bytes) {
  MutexLock lock(mutex_);
  constexpr auto kPage = std::align_val_t(4 * kKiB);
  void* const memory = ::operator new(bytes, kPage, std::nothrow);
  if (memory == nullptr)
    return hostError(Call::kHostMalloc, ErrorKind::kOutOfMemory, "out of memory");
  pinned_[memory] = {bytes, kPage};
  return memory;
}

Status HostDevice::doHostFree(void* pointer) {
  MutexLock lock(mutex_);
  const auto it = pinned_.find(pointer);
  if (it == pinned_.end())
    return hostError(Call::kHostFree, ErrorKind::kInvalidValue, "not allocated");
  ::operator delete(pointer, it->second.alignment);
  pinned_.erase(it);
  return {};
}

// ---- Queues ------------------------------------------------------------------------------------

bool HostDevice::isAlive(Stream stream) const {
  return stream.raw < queues_.size() && queues_[stream.raw].alive;
}

bool HostDevice::isReached(Mark mark) const { return queues_[mark.queue].done >= mark.position; }

HostDevice::Mark HostDevice::endOf(Stream stream) const {
  const Queue& queue = queues_[stream.raw];
  return {stream.raw, queue.done + queue.pieces.size()};
}

Status HostDevice::queue(Call call, Stream stream, Piece piece) {
  if (!isAlive(stream)) return noSuchStream(call);
  queues_[stream.raw].pieces.push_back(std::move(piece));
  advance();
  return {};
}

void HostDevice::runFront(Queue& queue) {
  queue.pieces.front().run();
  queue.pieces.pop_front();
  ++queue.done;
}

void HostDevice::advance() {
  for (bool moved = true; moved;) {
    moved = false;
    for (Queue& queue : queues_) {
      if (queue.pieces.empty() || queue.pieces.front().when == When::kLate ||
          !isReached(queue.pieces.front().after))
        continue;
      runFront(queue);
      moved = true;
    }
  }
}

// It ends: a piece waits only for what was queued before it.
void HostDevice::reach(Mark mark) {
  Queue& queue = queues_[mark.queue];
  while (!isReached(mark)) {
    reach(queue.pieces.front().after);
    runFront(queue);
  }
}

void HostDevice::reachAll() {
  for (std::size_t i = 0; i < queues_.size(); ++i) reach(endOf(Stream{i}));
}

Status HostDevice::launch(Stream stream, std::function<void()> work, When when) {
  MutexLock lock(mutex_);
  return queue(Call::kLaunchGraph, stream, {std::move(work), when, {}});
}

// ---- Streams -----------------------------------------------------------------------------------

Result<Stream> HostDevice::doCreateStream() {
  MutexLock lock(mutex_);
  queues_.emplace_back();
  return Stream{queues_.size() - 1};
}

Status HostDevice::doDestroyStream(Stream stream) {
  MutexLock lock(mutex_);
  if (stream == Stream{} || !isAlive(stream)) return noSuchStream(Call::kDestroyStream);
  queues_[stream.raw].alive = false;
  return {};
}

Status HostDevice::doWaitEvent(Stream stream, Event event) {
  MutexLock lock(mutex_);
  const auto it = events_.find(event.raw);
  if (it == events_.end()) return noSuchEvent(Call::kWaitEvent);
  return queue(Call::kWaitEvent, stream, {[] {}, When::kAtOnce, it->second});
}

Result<bool> HostDevice::doQueryStream(Stream stream) {
  MutexLock lock(mutex_);
  if (!isAlive(stream)) return noSuchStream(Call::kQueryStream);
  return isReached(endOf(stream));
}

Status HostDevice::doSynchronizeStream(Stream stream) {
  MutexLock lock(mutex_);
  if (!isAlive(stream)) return noSuchStream(Call::kSynchronizeStream);
  reach(endOf(stream));
  advance();
  return {};
}

Status HostDevice::doSynchronizeDevice() {
  MutexLock lock(mutex_);
  reachAll();
  return {};
}

// ---- Events ------------------------------------------------------------------------------------

Result<Event> HostDevice::doCreateEvent() {
  MutexLock lock(mutex_);
  events_[++last_event_] = {};
  return Event{last_event_};
}

Status HostDevice::doDestroyEvent(Event event) {
  MutexLock lock(mutex_);
  if (events_.erase(event.raw) == 0) return noSuchEvent(Call::kDestroyEvent);
  return {};
}

Status HostDevice::doRecordEvent(Event event, Stream stream) {
  MutexLock lock(mutex_);
  const auto it = events_.find(event.raw);
  if (it == events_.end()) return noSuchEvent(Call::kRecordEvent);
  if (!isAlive(stream)) return noSuchStream(Call::kRecordEvent);
  it->second = endOf(stream);
  return {};
}

Result<bool> HostDevice::doQueryEvent(Event event) {
  MutexLock lock(mutex_);
  const auto it = events_.find(event.raw);
  if (it == events_.end()) return noSuchEvent(Call::kQueryEvent);
  return isReached(it->second);
}

Status HostDevice::doSynchronizeEvent(Event event) {
  MutexLock lock(mutex_);
  const auto it = events_.find(event.raw);
  if (it == events_.end()) return noSuchEvent(Call::kSynchronizeEvent);
  reach(it->second);
  advance();
  return {};
}

// ---- The row in the table ----------------------------------------------------------------------

namespace {

Result<int> hostCount() { return 1; }

Result<std::unique_ptr<Device>> openHost(int) {
  return std::unique_ptr<Device>(std::make_unique<HostDevice>());
}

constinit const Backend kHostEntry{
    .name = "host",
    .compiled_in = true,
    .simulated = false,
    .deviceCount = hostCount,
    .open = openHost,
    .deviceSwitch = nullptr,
};

}  // namespace

void addHostBackend() {
  static const bool added = (addBackend(kHostEntry), true);
  (void)added;
}

}  // namespace cistern::test
