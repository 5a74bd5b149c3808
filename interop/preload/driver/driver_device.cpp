// A context's device: memory, pages and addresses, then streams, events and captures.
#include "interop/preload/driver/driver_device.hpp"

#include <algorithm>

#include <fcntl.h>

#include "allocator/base/process.hpp"
#include "allocator/device/vendor/error_kind.hpp"
#include "interop/preload/record/ledger.hpp"

namespace cistern::preload::GPU_NAMESPACE {

DriverDevice::DriverDevice(const Functions& driver, ContextOrder& order, Captures& captures,
                           const std::atomic<Reuse>& reuse)
    : driver_(driver), order_(order), captures_(captures), reuse_(reuse) {
  findOut();
  tried_ = true;
}

DriverDevice::~DriverDevice() = default;

void DriverDevice::findOut() {
  int device = 0;
  outcome(Call::kOpen, driver_.currentDevice(&device)).orThrow();
  ordinal_ = device;  // the driver numbers devices from 0
  {
    const MutexLock lock(mutex_);
    admitted_ = {ordinal_};
  }
  char name[128] = {};
  outcome(Call::kOpen, driver_.deviceName(name, sizeof name, device)).orThrow();
  name_ = name;
  const VirtualMemoryCapability claimed = driver_.claimedPages(ordinal_);
  if (claimed.supported)
    virtual_memory_ = whatWorks(claimed, [this](auto& kind) { return tryKind(kind); });
}

Status DriverDevice::tryKind(VirtualMemoryCapability& kind) {
  std::size_t granularity = 0;
  const Code asked = driver_.granularity(&granularity, ordinal_, kind);
  if (asked != kSuccess) return failure(Call::kCreatePage, asked);
  kind.granularity = granularity;
  virtual_memory_ = kind;
  return tryPage(*this);
}

void DriverDevice::took(std::uint64_t which, const Taken& memory) {
  {
    const MutexLock lock(mutex_);
    taken_[which] = memory;
  }
  const bool host = memory.location == Location::kHost;
  (host ? host_reserved_ : reserved_).fetch_add(memory.bytes, std::memory_order_relaxed);
  addTo(record().reserved, record().reserved_peak, memory.bytes);
  if (host) addTo(record().host_reserved, record().host_reserved_peak, memory.bytes);
}

void DriverDevice::gaveBack(const Taken& memory) noexcept {
  const bool host = memory.location == Location::kHost;
  (host ? host_reserved_ : reserved_).fetch_sub(memory.bytes, std::memory_order_relaxed);
  takeFrom(record().reserved, memory.bytes);
  if (host) takeFrom(record().host_reserved, memory.bytes);
}

// The record goes first: as soon as the driver has it back, another thread may get the same address
// or handle, and record that.
template <class Free>
Status DriverDevice::giveBack(Call call, std::uint64_t which, Free free) {
  std::map<std::uint64_t, Taken>::node_type record;
  {
    const MutexLock lock(mutex_);
    record = taken_.extract(which);
  }
  const Code result = free();
  if (result == kSuccess) {
    if (!record.empty()) gaveBack(record.mapped());
    return {};
  }
  const MutexLock lock(mutex_);
  taken_.insert(std::move(record));
  return failure(call, result);
}

// ---- Memory with an address ---------------------------------------------------------------------

Result<Address> DriverDevice::doMalloc(std::size_t bytes) {
  Address address = 0;
  const Code result = grow([&] { return driver_.malloc(&address, bytes); });
  if (result != kSuccess) return failure(Call::kMalloc, result);
  took(address, {bytes});
  return Address{address};
}

Status DriverDevice::doFree(Address address) {
  return giveBack(Call::kFree, address, [&] {
    return gone_ ? kSuccess : inContext([&] { return driver_.free(address); });
  });
}

Result<MemoryInfo> DriverDevice::doMemoryInfo() {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  const Code result = inContext([&] { return driver_.memoryInfo(&free_bytes, &total_bytes); });
  return outcome(Call::kMemoryInfo, result, MemoryInfo{free_bytes, total_bytes});
}

// ---- Pages and addresses ------------------------------------------------------------------------

Result<Address> DriverDevice::doReserve(std::size_t bytes) {
  Address address = 0;
  const Code result = inContext([&] { return driver_.reserve(&address, bytes); });
  return outcome(Call::kReserve, result, Address{address});
}

Status DriverDevice::doFreeReservation(Address address, std::size_t bytes) {
  return outcome(Call::kFreeReservation,
                 inContext([&] { return driver_.freeReservation(address, bytes); }));
}

Result<Page> DriverDevice::doCreatePage(std::size_t bytes) {
  std::uint64_t handle = 0;
  const Code result =
      grow([&] { return driver_.createPage(&handle, bytes, ordinal_, virtual_memory_); });
  if (result != kSuccess) return failure(Call::kCreatePage, result);
  took(handle, {bytes});
  return Page{handle};
}

Status DriverDevice::doReleasePage(Page page) {
  return giveBack(Call::kReleasePage, page.raw,
                  [&] { return inContext([&] { return driver_.releasePage(page.raw); }); });
}

Result<int> DriverDevice::doExportPage(Page page) {
  int descriptor = -1;
  const Code result = inContext([&] { return driver_.exportPage(page.raw, &descriptor); });
  if (result == kSuccess) (void)fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return outcome(Call::kExportPage, result, descriptor);
}

// Its memory counts where it was made.
Result<Page> DriverDevice::doImportPage(int descriptor) {
  std::uint64_t handle = 0;
  const Code result = inContext([&] { return driver_.importPage(descriptor, &handle); });
  return outcome(Call::kImportPage, result, Page{handle});
}

Status DriverDevice::doMap(Address address, std::size_t bytes, Page page) {
  return outcome(Call::kMap, inContext([&] { return driver_.map(address, bytes, page.raw); }));
}

Code DriverDevice::allow(Address address, std::size_t bytes,
                         const std::vector<int>& ordinals) const {
  return inContext([&] { return driver_.setAccess(address, bytes, ordinals); });
}

// Under the lock, so that a peer that is admitted meanwhile finds the range, or is found by it.
Status DriverDevice::doSetAccess(Address address, std::size_t bytes) {
  const MutexLock lock(mutex_);
  const Code result = allow(address, bytes, admitted_);
  if (result != kSuccess) return failure(Call::kSetAccess, result);
  mapped_[address] = bytes;
  return {};
}

Status DriverDevice::doUnmap(Address address, std::size_t bytes) {
  const MutexLock lock(mutex_);
  const Code result = inContext([&] { return driver_.unmap(address, bytes); });
  if (result != kSuccess) return failure(Call::kUnmap, result);
  mapped_.erase(mapped_.lower_bound(address), mapped_.lower_bound(address + bytes));
  return {};
}

Status DriverDevice::admit(int peer_ordinal) {
  const MutexLock lock(mutex_);
  if (std::count(admitted_.begin(), admitted_.end(), peer_ordinal) != 0) return {};
  for (const auto& [address, bytes] : mapped_) {
    const Code result = allow(address, bytes, {peer_ordinal});
    if (result != kSuccess) return failure(Call::kSetAccess, result);
  }
  admitted_.push_back(peer_ordinal);
  return {};
}

Result<bool> DriverDevice::doCanAccessPeer(int peer_ordinal) {
  if (peer_ordinal == ordinal_) return true;
  int can = 0;
  const Code result = driver_.canAccessPeer(&can, ordinal_, peer_ordinal);
  return outcome(Call::kCanAccessPeer, result, can != 0);
}

// ---- Failures -----------------------------------------------------------------------------------

DeviceError DriverDevice::failure(Call call, Code result) const {
  return {call, errorKind(int(result)), int(result), driver_.errorName(result), {}};
}

Status DriverDevice::outcome(Call call, Code result) const {
  if (result != kSuccess) return failure(call, result);
  return {};
}

namespace {

StreamHandle handleOf(Stream stream) { return reinterpret_cast<StreamHandle>(stream.raw); }
EventHandle handleOf(Event event) { return reinterpret_cast<EventHandle>(event.raw); }

}  // namespace

Result<bool> DriverDevice::readiness(Call call, Code result) const {
  if (result == kSuccess) return true;
  if (result == kNotReady) return false;
  return failure(call, result);
}

// ---- Streams ------------------------------------------------------------------------------------

Result<bool> DriverDevice::doQueryStream(Stream stream) {
  if (gone_ || (stream == Stream{} && isComplete())) return true;
  return readiness(Call::kQueryStream, onStream(stream, [&](StreamHandle asked) {
                     return driver_.queryStream(asked);
                   }));
}

Status DriverDevice::doSynchronizeStream(Stream stream) {
  if (gone_ || (stream == Stream{} && isComplete())) return {};
  const auto wait = [&](StreamHandle on) { return driver_.synchronizeStream(on); };
  return outcome(Call::kSynchronizeStream, onStream(stream, wait));
}

// The hub is brought up first, so that later queries find stream 0 complete.
Status DriverDevice::doSynchronizeDevice() {
  if (gone_) return {};
  StreamHandle hub = nullptr;
  if (!isComplete()) (void)order_.reach(hub);
  const ContextOrder::Waiting since = order_.waiting();
  const Code result = inContext([&] { return driver_.synchronizeContext(); });
  if (result == kSuccess) order_.waited(since, nullptr);
  return outcome(Call::kSynchronizeDevice, result);
}

// For stream 0 with the hub, which comes after all that was submitted before the last cudaFree.
template <class Call>
Code DriverDevice::onStream(Stream stream, Call call) {
  StreamHandle on = handleOf(stream);
  if (stream == Stream{}) {
    if (const Code result = order_.reach(on); result != kSuccess) return result;
  }
  return inContext([&] { return call(on); });
}

Status DriverDevice::doWaitEvent(Stream stream, Event event) {
  if (gone_) return {};
  if (stream != Stream{}) {
    return outcome(Call::kWaitEvent,
                   inContext([&] { return driver_.waitEvent(handleOf(stream), handleOf(event)); }));
  }
  if (isComplete()) return doSynchronizeEvent(event);
  return outcome(Call::kWaitEvent, order_.allAfter(handleOf(event)));
}

// ---- Events -------------------------------------------------------------------------------------

Result<Event> DriverDevice::doCreateEvent() {
  EventHandle event = nullptr;
  const Code result = inContext([&] { return driver_.createEvent(&event); });
  return outcome(Call::kCreateEvent, result, Event{reinterpret_cast<std::uintptr_t>(event)});
}

Status DriverDevice::doDestroyEvent(Event event) {
  if (gone_) return {};
  return outcome(Call::kDestroyEvent,
                 inContext([&] { return driver_.destroyEvent(handleOf(event)); }));
}

Status DriverDevice::doRecordEvent(Event event, Stream stream) {
  if (gone_ || (stream == Stream{} && isComplete())) return {};
  const auto record = [&](StreamHandle on) { return driver_.recordEvent(handleOf(event), on); };
  return outcome(Call::kRecordEvent, onStream(stream, record));
}

Result<bool> DriverDevice::doQueryEvent(Event event) {
  if (gone_) return true;
  return readiness(Call::kQueryEvent,
                   inContext([&] { return driver_.queryEvent(handleOf(event)); }));
}

Status DriverDevice::doSynchronizeEvent(Event event) {
  if (gone_) return {};
  return outcome(Call::kSynchronizeEvent,
                 inContext([&] { return driver_.synchronizeEvent(handleOf(event)); }));
}

// ---- Captures -----------------------------------------------------------------------------------

// Stream 0 is captured as soon as any stream is: memory freed then is in no order yet. No capture
// has an id that anybody asks for: graphs' memory is the driver's.
Result<CaptureInfo> DriverDevice::doCaptureInfo(Stream stream) {
  if (gone_) return CaptureInfo{};
  CaptureState status = kNoCapture;
  Code result = kSuccess;
  if (stream != Stream{}) {
    result = inContext([&] { return driver_.isCapturing(handleOf(stream), &status); });
    if (result == kCaptureImplicit) {  // the legacy stream, which cannot be itself
      status = kActiveCapture;
      result = kSuccess;
    }
  } else if (captures_.maybe()) {
    const MutexLock lock(captures_.beginning());
    if (order_.capturing()) status = kActiveCapture;
  }
  if (status == kNoCapture) return outcome(Call::kCaptureInfo, result, CaptureInfo{});
  const bool active = status == kActiveCapture;
  return outcome(Call::kCaptureInfo, result,
                 CaptureInfo{active ? CaptureStatus::kActive : CaptureStatus::kInvalidated, 1});
}

Result<CaptureMode> DriverDevice::doExchangeCaptureMode(CaptureMode mode) {
  auto exchanged = int(mode);
  const Code result = driver_.exchangeCaptureMode(&exchanged);
  return outcome(Call::kExchangeCaptureMode, result, CaptureMode(exchanged));
}

// ---- Pages of the host's memory
// --------------------------------------------------------------------

// The device's memory is not concerned, so that no thread's turn has to be waited for.
Result<Page> DriverDevice::makeHostPage(HostPages kind, std::size_t bytes) {
  std::uint64_t handle = 0;
  const Code result =
      inContext([&] { return driver_.createHostPage(&handle, bytes, ordinal_, kind); });
  return outcome(Call::kCreateHostPage, result, Page{handle});
}

// Two threads may try at once: both find the same.
Status DriverDevice::tryHostPages() {
  if (!virtual_memory_.host_pages) return failure(Call::kCreateHostPage, kNotSupported);
  Status last;
  const HostPages kind = hostPagesThatWork([&](HostPages tried) {
    const std::uint64_t bytes = virtual_memory_.granularity;
    return last = tryMappingOf(*this, bytes, [&] { return makeHostPage(tried, bytes); });
  });
  if (kind != HostPages::kUntried) host_pages_ = kind;
  return kind == HostPages::kNone ? last : Status();
}

Result<Page> DriverDevice::doCreateHostPage(std::size_t bytes) {
  if (host_pages_ == HostPages::kUntried) {
    if (const Status tried = tryHostPages(); !tried.ok()) return tried.error();
  }
  const HostPages kind = host_pages_;
  if (kind == HostPages::kUntried) return failure(Call::kCreateHostPage, kOutOfMemory);
  if (kind == HostPages::kNone) return failure(Call::kCreateHostPage, kNotSupported);
  const Result<Page> page = makeHostPage(kind, bytes);
  if (page.ok()) took(page.value().raw, {bytes, Location::kHost});
  return page;
}

}  // namespace cistern::preload::GPU_NAMESPACE
