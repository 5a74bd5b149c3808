// A device in front of another: the test is called before each call that goes through, without a
// lock held, and may make calls of its own on the device behind. So what happens between two calls
// of one verb can be chosen.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cistern/device.hpp"

namespace cistern::test {

class InterposedDevice final : public Device {
 public:
  explicit InterposedDevice(Device& behind) : behind_(behind) {}

  /// Called before each call; set it while no other thread uses the device.
  std::function<void(Call)> before;

  std::string backend() const override { return behind_.backend(); }
  std::string name() const override { return behind_.name(); }
  int ordinal() const override { return behind_.ordinal(); }
  VirtualMemoryCapability virtualMemory() const override { return behind_.virtualMemory(); }
  bool isPerThread(Stream stream) const override { return behind_.isPerThread(stream); }
  bool interprocessSupported() const override { return behind_.interprocessSupported(); }
  bool driverPoolSupported() const override { return behind_.driverPoolSupported(); }

 private:
  Device& at(Call call) {
    if (before) before(call);
    return behind_;
  }

  Result<Address> doMalloc(std::size_t n) override { return at(Call::kMalloc).malloc(n); }
  Status doFree(Address a) override { return at(Call::kFree).free(a); }
  Result<MemoryInfo> doMemoryInfo() override { return at(Call::kMemoryInfo).memoryInfo(); }
  Result<Address> doReserve(std::size_t n) override { return at(Call::kReserve).reserve(n); }
  Status doFreeReservation(Address a, std::size_t n) override {
    return at(Call::kFreeReservation).freeReservation(a, n);
  }
  Result<Page> doCreatePage(std::size_t n) override { return at(Call::kCreatePage).createPage(n); }
  Status doReleasePage(Page p) override { return at(Call::kReleasePage).releasePage(p); }
  Status doMap(Address a, std::size_t n, Page p) override { return at(Call::kMap).map(a, n, p); }
  Status doSetAccess(Address a, std::size_t n) override {
    return at(Call::kSetAccess).setAccess(a, n);
  }
  Status doUnmap(Address a, std::size_t n) override { return at(Call::kUnmap).unmap(a, n); }
  Result<int> doExportPage(Page p) override { return at(Call::kExportPage).exportPage(p); }
  Result<Page> doImportPage(int d) override { return at(Call::kImportPage).importPage(d); }
  Result<FabricHandle> doExportToFabric(Page p) override {
    return at(Call::kExportPage).exportToFabric(p);
  }
  Result<Page> doImportFromFabric(const FabricHandle& h) override {
    return at(Call::kImportPage).importFromFabric(h);
  }
  Result<Stream> doCreateStream() override { return at(Call::kCreateStream).createStream(); }
  Status doDestroyStream(Stream s) override { return at(Call::kDestroyStream).destroyStream(s); }
  Status doWaitEvent(Stream s, Event e) override { return at(Call::kWaitEvent).waitEvent(s, e); }
  Result<bool> doQueryStream(Stream s) override { return at(Call::kQueryStream).queryStream(s); }
  Status doSynchronizeStream(Stream s) override {
    return at(Call::kSynchronizeStream).synchronizeStream(s);
  }
  Result<Event> doCreateEvent() override { return at(Call::kCreateEvent).createEvent(); }
  Status doDestroyEvent(Event e) override { return at(Call::kDestroyEvent).destroyEvent(e); }
  Status doRecordEvent(Event e, Stream s) override {
    return at(Call::kRecordEvent).recordEvent(e, s);
  }
  Result<bool> doQueryEvent(Event e) override { return at(Call::kQueryEvent).queryEvent(e); }
  Status doSynchronizeEvent(Event e) override {
    return at(Call::kSynchronizeEvent).synchronizeEvent(e);
  }
  Status doSynchronizeDevice() override { return at(Call::kSynchronizeDevice).synchronizeDevice(); }
  Result<CaptureInfo> doCaptureInfo(Stream s) override {
    return at(Call::kCaptureInfo).captureInfo(s);
  }
  Result<CaptureInfo> doCaptureFrontier(Stream s, std::vector<GraphNode>& n) override {
    return at(Call::kCaptureFrontier).captureFrontier(s, n);
  }
  Status doNodeDependencies(GraphNode n, std::vector<GraphNode>& d) override {
    return at(Call::kNodeDependencies).nodeDependencies(n, d);
  }
  Result<CaptureMode> doExchangeCaptureMode(CaptureMode m) override {
    return at(Call::kExchangeCaptureMode).exchangeCaptureMode(m);
  }
  Status doBeginCapture(Stream s, CaptureMode m) override {
    return at(Call::kBeginCapture).beginCapture(s, m);
  }
  Result<DeviceGraph> doEndCapture(Stream s) override {
    return at(Call::kEndCapture).endCapture(s);
  }
  Result<DeviceGraphExec> doInstantiate(DeviceGraph g) override {
    return at(Call::kInstantiate).instantiate(g);
  }
  Status doLaunchGraph(DeviceGraphExec e, Stream s) override {
    return at(Call::kLaunchGraph).launchGraph(e, s);
  }
  Status doDestroyGraph(DeviceGraph g) override { return at(Call::kDestroyGraph).destroyGraph(g); }
  Status doDestroyGraphExec(DeviceGraphExec e) override {
    return at(Call::kDestroyGraphExec).destroyGraphExec(e);
  }
  Status doDumpGraph(DeviceGraph g, const std::string& p) override {
    return at(Call::kDumpGraph).dumpGraph(g, p);
  }
  Status doCopy(Address to, Address from, std::size_t n, Stream s) override {
    return at(Call::kCopy).copy(to, from, n, s);
  }
  Result<void*> doHostMalloc(std::size_t n) override { return at(Call::kHostMalloc).hostMalloc(n); }
  Status doHostFree(void* p) override { return at(Call::kHostFree).hostFree(p); }
  Result<bool> doCanAccessPeer(int p) override { return at(Call::kCanAccessPeer).canAccessPeer(p); }
  Status doAdmitPeer(int p) override { return at(Call::kAdmitPeer).admitPeer(p); }
  Result<Address> doMallocAsync(std::size_t n, Stream s) override {
    return at(Call::kMallocAsync).mallocAsync(n, s);
  }
  Status doFreeAsync(Address a, Stream s) override { return at(Call::kFreeAsync).freeAsync(a, s); }
  Result<DriverPoolInfo> doDriverPool(bool r) override {
    return at(Call::kDriverPool).driverPool(r);
  }

  Device& behind_;
};

}  // namespace cistern::test
