// A simulated device whose own host memory does not count: the driver's is not the allocator's to
// ask for.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "allocator/device/sim/sim_device.hpp"
#include "tests/support/host_memory/host_memory.hpp"

namespace cistern::test {

class QuietDevice final : public Device {
 public:
  explicit QuietDevice(sim::SimConfig config) : sim_(std::move(config)) {}
  sim::SimDevice& sim() { return sim_; }

  std::string backend() const override { return sim_.backend(); }
  std::string name() const override { return sim_.name(); }
  int ordinal() const override { return sim_.ordinal(); }
  VirtualMemoryCapability virtualMemory() const override { return sim_.virtualMemory(); }
  bool isPerThread(Stream stream) const override { return sim_.isPerThread(stream); }
  bool interprocessSupported() const override { return false; }
  bool driverPoolSupported() const override { return false; }
  std::uint64_t hostNanoseconds() const override { return sim_.hostNanoseconds(); }

 private:
  template <class Call>
  static auto quietly(Call call) {
#if defined(CISTERN_COUNTS_HOST_MEMORY)
    const HostAllocationsApart apart;
#endif
    return call();
  }

  Result<Address> doMalloc(std::size_t bytes) override {
    return quietly([&] { return sim_.malloc(bytes); });
  }
  Status doFree(Address address) override {
    return quietly([&] { return sim_.free(address); });
  }
  Result<MemoryInfo> doMemoryInfo() override {
    return quietly([&] { return sim_.memoryInfo(); });
  }
  Result<Address> doReserve(std::size_t bytes) override {
    return quietly([&] { return sim_.reserve(bytes); });
  }
  Status doFreeReservation(Address address, std::size_t bytes) override {
    return quietly([&] { return sim_.freeReservation(address, bytes); });
  }
  Result<Page> doCreatePage(std::size_t bytes) override {
    return quietly([&] { return sim_.createPage(bytes); });
  }
  Status doReleasePage(Page page) override {
    return quietly([&] { return sim_.releasePage(page); });
  }
  Status doMap(Address address, std::size_t bytes, Page page) override {
    return quietly([&] { return sim_.map(address, bytes, page); });
  }
  Status doSetAccess(Address address, std::size_t bytes) override {
    return quietly([&] { return sim_.setAccess(address, bytes); });
  }
  Status doUnmap(Address address, std::size_t bytes) override {
    return quietly([&] { return sim_.unmap(address, bytes); });
  }
  Result<int> doExportPage(Page page) override {
    return quietly([&] { return sim_.exportPage(page); });
  }
  Result<Page> doImportPage(int descriptor) override {
    return quietly([&] { return sim_.importPage(descriptor); });
  }
  Result<FabricHandle> doExportToFabric(Page page) override {
    return quietly([&] { return sim_.exportToFabric(page); });
  }
  Result<Page> doImportFromFabric(const FabricHandle& handle) override {
    return quietly([&] { return sim_.importFromFabric(handle); });
  }
  Result<Stream> doCreateStream() override {
    return quietly([&] { return sim_.createStream(); });
  }
  Status doDestroyStream(Stream stream) override {
    return quietly([&] { return sim_.destroyStream(stream); });
  }
  Status doWaitEvent(Stream stream, Event event) override {
    return quietly([&] { return sim_.waitEvent(stream, event); });
  }
  Result<bool> doQueryStream(Stream stream) override {
    return quietly([&] { return sim_.queryStream(stream); });
  }
  Status doSynchronizeStream(Stream stream) override {
    return quietly([&] { return sim_.synchronizeStream(stream); });
  }
  Result<Event> doCreateEvent() override {
    return quietly([&] { return sim_.createEvent(); });
  }
  Status doDestroyEvent(Event event) override {
    return quietly([&] { return sim_.destroyEvent(event); });
  }
  Status doRecordEvent(Event event, Stream stream) override {
    return quietly([&] { return sim_.recordEvent(event, stream); });
  }
  Result<bool> doQueryEvent(Event event) override {
    return quietly([&] { return sim_.queryEvent(event); });
  }
  Status doSynchronizeEvent(Event event) override {
    return quietly([&] { return sim_.synchronizeEvent(event); });
  }
  Status doSynchronizeDevice() override {
    return quietly([&] { return sim_.synchronizeDevice(); });
  }
  Result<CaptureInfo> doCaptureInfo(Stream stream) override {
    return quietly([&] { return sim_.captureInfo(stream); });
  }
  Result<CaptureInfo> doCaptureFrontier(Stream stream, std::vector<GraphNode>& nodes) override {
    return quietly([&] { return sim_.captureFrontier(stream, nodes); });
  }
  Status doNodeDependencies(GraphNode node, std::vector<GraphNode>& dependencies) override {
    return quietly([&] { return sim_.nodeDependencies(node, dependencies); });
  }
  Result<CaptureMode> doExchangeCaptureMode(CaptureMode mode) override {
    return quietly([&] { return sim_.exchangeCaptureMode(mode); });
  }
  Status doBeginCapture(Stream stream, CaptureMode mode) override {
    return quietly([&] { return sim_.beginCapture(stream, mode); });
  }
  Result<DeviceGraph> doEndCapture(Stream stream) override {
    return quietly([&] { return sim_.endCapture(stream); });
  }
  Result<DeviceGraphExec> doInstantiate(DeviceGraph graph) override {
    return quietly([&] { return sim_.instantiate(graph); });
  }
  Status doLaunchGraph(DeviceGraphExec exec, Stream stream) override {
    return quietly([&] { return sim_.launchGraph(exec, stream); });
  }
  Status doDestroyGraph(DeviceGraph graph) override {
    return quietly([&] { return sim_.destroyGraph(graph); });
  }
  Status doDestroyGraphExec(DeviceGraphExec exec) override {
    return quietly([&] { return sim_.destroyGraphExec(exec); });
  }
  Status doDumpGraph(DeviceGraph graph, const std::string& path) override {
    return quietly([&] { return sim_.dumpGraph(graph, path); });
  }
  Result<void*> doHostMalloc(std::size_t bytes) override {
    return quietly([&] { return sim_.hostMalloc(bytes); });
  }
  Status doHostFree(void* pointer) override {
    return quietly([&] { return sim_.hostFree(pointer); });
  }
  Status doCopy(Address to, Address from, std::size_t bytes, Stream stream) override {
    return quietly([&] { return sim_.copy(to, from, bytes, stream); });
  }
  Result<bool> doCanAccessPeer(int peer_ordinal) override {
    return quietly([&] { return sim_.canAccessPeer(peer_ordinal); });
  }
  Result<Address> doMallocAsync(std::size_t bytes, Stream stream) override {
    return quietly([&] { return sim_.mallocAsync(bytes, stream); });
  }
  Status doFreeAsync(Address address, Stream stream) override {
    return quietly([&] { return sim_.freeAsync(address, stream); });
  }
  Result<DriverPoolInfo> doDriverPool(bool reset) override {
    return quietly([&] { return sim_.driverPool(reset); });
  }

  sim::SimDevice sim_;
};

}  // namespace cistern::test
