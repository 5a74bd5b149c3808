#include "cistern/device.hpp"

#include <chrono>

#include "allocator/device/background.hpp"

namespace cistern {
namespace {

DeviceError notSupported(Call call) {
  return {call, ErrorKind::kNotSupported, 0, "not supported by this device", {}};
}

}  // namespace

void Device::count(Call call) {
  counts_[std::size_t(call)].fetch_add(1, std::memory_order_relaxed);
  if (BackgroundAccount::active()) {
    background_counts_[std::size_t(call)].fetch_add(1, std::memory_order_relaxed);
  }
}

// Each public call is the same two steps: count, then call the backend.

Result<Address> Device::malloc(std::size_t bytes) {
  count(Call::kMalloc);
  return doMalloc(bytes);
}

Status Device::free(Address address) {
  count(Call::kFree);
  return doFree(address);
}

Result<MemoryInfo> Device::memoryInfo() {
  count(Call::kMemoryInfo);
  return doMemoryInfo();
}

Result<Address> Device::reserve(std::size_t bytes) {
  count(Call::kReserve);
  return doReserve(bytes);
}

Status Device::freeReservation(Address address, std::size_t bytes) {
  count(Call::kFreeReservation);
  return doFreeReservation(address, bytes);
}

Result<Page> Device::createPage(std::size_t bytes) {
  count(Call::kCreatePage);
  return doCreatePage(bytes);
}

Status Device::releasePage(Page page) {
  count(Call::kReleasePage);
  return doReleasePage(page);
}

Status Device::map(Address address, std::size_t bytes, Page page) {
  count(Call::kMap);
  return doMap(address, bytes, page);
}

Status Device::setAccess(Address address, std::size_t bytes) {
  count(Call::kSetAccess);
  return doSetAccess(address, bytes);
}

Status Device::unmap(Address address, std::size_t bytes) {
  count(Call::kUnmap);
  return doUnmap(address, bytes);
}

Result<int> Device::exportPage(Page page) {
  count(Call::kExportPage);
  return doExportPage(page);
}

Result<Page> Device::importPage(int descriptor) {
  count(Call::kImportPage);
  return doImportPage(descriptor);
}

// A page that was not made for a fabric has no name there, whatever a driver claims.
Result<FabricHandle> Device::exportToFabric(Page page) {
  count(Call::kExportPage);
  if (!virtualMemory().fabric) return notSupported(Call::kExportPage);
  return doExportToFabric(page);
}

Result<Page> Device::importFromFabric(const FabricHandle& handle) {
  count(Call::kImportPage);
  if (!virtualMemory().fabric) return notSupported(Call::kImportPage);
  return doImportFromFabric(handle);
}

Result<Stream> Device::createStream() {
  count(Call::kCreateStream);
  return doCreateStream();
}

Status Device::destroyStream(Stream stream) {
  count(Call::kDestroyStream);
  return doDestroyStream(stream);
}

Status Device::waitEvent(Stream stream, Event event) {
  count(Call::kWaitEvent);
  return doWaitEvent(stream, event);
}

Result<bool> Device::queryStream(Stream stream) {
  count(Call::kQueryStream);
  return doQueryStream(stream);
}

Status Device::synchronizeStream(Stream stream) {
  count(Call::kSynchronizeStream);
  return doSynchronizeStream(stream);
}

Result<Event> Device::createEvent() {
  count(Call::kCreateEvent);
  return doCreateEvent();
}

Status Device::destroyEvent(Event event) {
  count(Call::kDestroyEvent);
  return doDestroyEvent(event);
}

Status Device::recordEvent(Event event, Stream stream) {
  count(Call::kRecordEvent);
  return doRecordEvent(event, stream);
}

Result<bool> Device::queryEvent(Event event) {
  count(Call::kQueryEvent);
  return doQueryEvent(event);
}

Status Device::synchronizeEvent(Event event) {
  count(Call::kSynchronizeEvent);
  return doSynchronizeEvent(event);
}

Status Device::synchronizeDevice() {
  count(Call::kSynchronizeDevice);
  return doSynchronizeDevice();
}

Result<CaptureInfo> Device::captureInfo(Stream stream) {
  count(Call::kCaptureInfo);
  return doCaptureInfo(stream);
}

Result<CaptureInfo> Device::captureFrontier(Stream stream, std::vector<GraphNode>& nodes) {
  count(Call::kCaptureFrontier);
  return doCaptureFrontier(stream, nodes);
}

Status Device::nodeDependencies(GraphNode node, std::vector<GraphNode>& dependencies) {
  count(Call::kNodeDependencies);
  return doNodeDependencies(node, dependencies);
}

Result<CaptureMode> Device::exchangeCaptureMode(CaptureMode mode) {
  count(Call::kExchangeCaptureMode);
  return doExchangeCaptureMode(mode);
}

Status Device::beginCapture(Stream stream, CaptureMode mode) {
  count(Call::kBeginCapture);
  return doBeginCapture(stream, mode);
}

Result<DeviceGraph> Device::endCapture(Stream stream) {
  count(Call::kEndCapture);
  return doEndCapture(stream);
}

Result<DeviceGraphExec> Device::instantiate(DeviceGraph graph) {
  count(Call::kInstantiate);
  return doInstantiate(graph);
}

Status Device::launchGraph(DeviceGraphExec exec, Stream stream) {
  count(Call::kLaunchGraph);
  return doLaunchGraph(exec, stream);
}

Status Device::destroyGraph(DeviceGraph graph) {
  count(Call::kDestroyGraph);
  return doDestroyGraph(graph);
}

Status Device::destroyGraphExec(DeviceGraphExec exec) {
  count(Call::kDestroyGraphExec);
  return doDestroyGraphExec(exec);
}

Status Device::dumpGraph(DeviceGraph graph, const std::string& path) {
  count(Call::kDumpGraph);
  return doDumpGraph(graph, path);
}

Status Device::copy(Address to, Address from, std::size_t bytes, Stream stream) {
  count(Call::kCopy);
  return doCopy(to, from, bytes, stream);
}

Result<void*> Device::hostMalloc(std::size_t bytes) {
  count(Call::kHostMalloc);
  return doHostMalloc(bytes);
}

Status Device::hostFree(void* pointer) {
  count(Call::kHostFree);
  return doHostFree(pointer);
}

Result<bool> Device::canAccessPeer(int peer_ordinal) {
  count(Call::kCanAccessPeer);
  return doCanAccessPeer(peer_ordinal);
}

Status Device::admitPeer(int peer_ordinal) {
  count(Call::kAdmitPeer);
  return doAdmitPeer(peer_ordinal);
}

Result<Address> Device::mallocAsync(std::size_t bytes, Stream stream) {
  count(Call::kMallocAsync);
  return doMallocAsync(bytes, stream);
}

Status Device::freeAsync(Address address, Stream stream) {
  count(Call::kFreeAsync);
  return doFreeAsync(address, stream);
}

Result<DriverPoolInfo> Device::driverPool(bool reset) {
  count(Call::kDriverPool);
  return doDriverPool(reset);
}

// ---- What a backend may leave out --------------------------------------------------------------

Result<int> Device::doExportPage(Page) { return notSupported(Call::kExportPage); }
Result<Page> Device::doImportPage(int) { return notSupported(Call::kImportPage); }
Result<FabricHandle> Device::doExportToFabric(Page) { return notSupported(Call::kExportPage); }
Result<Page> Device::doImportFromFabric(const FabricHandle&) {
  return notSupported(Call::kImportPage);
}
Status Device::doAdmitPeer(int peer_ordinal) {
  if (peer_ordinal == ordinal()) return {};
  return notSupported(Call::kAdmitPeer);
}

// ---- Introspection -----------------------------------------------------------------------------

namespace {

CallCounts snapshotOf(const std::array<std::atomic<std::uint64_t>, kCallCount>& counts) {
  CallCounts snapshot{};
  for (std::size_t i = 0; i < kCallCount; ++i) {
    snapshot[i] = counts[i].load(std::memory_order_relaxed);
  }
  return snapshot;
}

}  // namespace

CallCounts Device::callCounts() const { return snapshotOf(counts_); }

CallCounts Device::backgroundCallCounts() const { return snapshotOf(background_counts_); }

std::uint64_t Device::hostNanoseconds() const {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

RelaxedCaptureMode::RelaxedCaptureMode(Device& device)
    : device_(device), before_(device.exchangeCaptureMode(CaptureMode::kRelaxed)) {}

RelaxedCaptureMode::~RelaxedCaptureMode() {
  if (before_.ok()) (void)device_.exchangeCaptureMode(before_.value());
}

}  // namespace cistern
