// The self-test: calls the verbs of PyTorch's interface through its base classes and checks the
// answers. `_newer.py` runs it, in a process of its own, for a PyTorch that is newer than the
// newest known one. It takes the simulated device ($CISTERN_BACKEND=sim) and no GPU.
#include <string>

#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include "exports.hpp"
#include "releases/calls.hpp"

// PyTorch's own, which no header declares. A release may lack it.
namespace c10::cuda::_internal {
__attribute__((weak)) void setHasPrimaryContext(bool (*has)(c10::DeviceIndex));
}

namespace cistern_torch {
namespace {

struct Failed {
  std::string text;
};

void expect(bool holds, const char* what) {
  if (!holds) throw Failed{what};
}

template <class Error, class Work>
void expectError(Work work, const char* what) {
  try {
    work();
  } catch (const Error&) {
    return;
  }
  throw Failed{what};
}

constexpr std::size_t kBytes = 3 << 20;
constexpr TorchPoolId kPool{0, 4711};

struct NoStack final : c10::GatheredContext {};
std::shared_ptr<c10::GatheredContext> noStack() { return std::make_shared<NoStack>(); }

std::int64_t current(const c10::CachingAllocator::StatArray& stat) { return stat[0].current; }

/// Without a context of CUDA's, so that no GPU need be there.
void useDevice() {
  if (c10::cuda::_internal::setHasPrimaryContext == nullptr) return;
  c10::cuda::_internal::setHasPrimaryContext([](DeviceIndex) { return false; });
  C10_CUDA_CHECK(c10::cuda::MaybeSetDevice(0));
}

void testBlocks(theirs::CUDAAllocator& cuda) {
  cuda.init(1);
  expect(cuda.initialized(), "initialized() after init()");
  expect(cuda.name() == "cistern", "name()");
  expect(cuda.isEnabled(), "isEnabled()");
  void* const first = cuda.raw_alloc_with_stream(kBytes, nullptr);
  void* const second = cuda.raw_alloc_with_stream(kBytes, nullptr);
  expect(first != nullptr && second != nullptr && first != second, "raw_alloc_with_stream()");
  expect(cuda.raw_alloc_with_stream(0, nullptr) == nullptr, "raw_alloc_with_stream(0)");
  std::size_t around = 0;
  void* const base = cuda.getBaseAllocation(second, &around);
  const auto* const at = static_cast<const char*>(base);
  const auto* const block = static_cast<const char*>(second);
  expect(at <= block && block + kBytes <= at + around, "getBaseAllocation()");
  const auto stats = cuda.getDeviceStats(0);
  expect(current(stats.allocation) == 2, "getDeviceStats(): allocation");
  expect(current(stats.allocated_bytes) == std::int64_t(2 * kBytes), "getDeviceStats(): bytes");
  const c10::DataPtr owned(second, second, cuda.raw_deleter(), c10::Device(c10::kCUDA, 0));
  const c10::cuda::CUDAStream stream(c10::cuda::CUDAStream::UNCHECKED,
                                     c10::Stream(c10::Stream::DEFAULT, c10::Device(c10::kCUDA, 0)));
  cuda.recordStream(owned, stream);
  static_cast<c10::DeviceAllocator&>(cuda).recordStream(owned, stream.unwrap());
  cuda.raw_delete(first);
  expect(current(cuda.getDeviceStats(0).allocation) == 1, "raw_delete()");
}

void testFigures(theirs::CUDAAllocator& cuda) {
  expect(current(cuda.getDeviceStats(0).allocation) == 0, "raw_deleter()");
  cuda.resetPeakStats(0);
  expect(cuda.getDeviceStats(0).allocated_bytes[0].peak == 0, "resetPeakStats()");
  cuda.resetAccumulatedStats(0);
  expect(cuda.getDeviceStats(0).allocated_bytes[0].allocated == 0, "resetAccumulatedStats()");
  std::size_t largest = 0;
  cuda.cacheInfo(0, &largest);
  expect(largest >= kBytes, "cacheInfo()");
  cuda.emptyCache();
  expect(current(cuda.getDeviceStats(0).reserved_bytes) == 0, "emptyCache()");
  expect(calls::noExpandableSegments(cuda), "getExpandableSegmentSizes()");
}

void testLimit(theirs::CUDAAllocator& cuda) {
  static int seen = 0;  // observers stay
  cuda.attachOutOfMemoryObserver([](auto&&...) { ++seen; });
  calls::attachRejectionObserver(cuda);
  cuda.setMemoryFraction(1e-6, 0);
  expect(cuda.getMemoryFraction(0) < 1e-3, "setMemoryFraction(), getMemoryFraction()");
  expectError<c10::OutOfMemoryError>([&] { (void)cuda.raw_alloc_with_stream(1 << 30, nullptr); },
                                     "an OutOfMemoryError at the limit");
  expect(seen == 1, "attachOutOfMemoryObserver()");
  expect(cuda.getDeviceStats(0).num_ooms == 1, "getDeviceStats(): num_ooms");
  cuda.resetAccumulatedStats(0);
  expect(cuda.getDeviceStats(0).num_ooms == 0, "resetAccumulatedStats(): num_ooms");
  cuda.setMemoryFraction(1, 0);
}

const theirs::TraceEntry* find(const theirs::SnapshotInfo& snapshot, Action action) {
  for (const auto& entry : snapshot.device_traces.at(0)) {
    if (entry.action_ == action) return &entry;
  }
  return nullptr;
}

void testReports(theirs::CUDAAllocator& cuda) {
  static int tracked = 0;  // trackers stay
  cuda.attachAllocatorTraceTracker([](const theirs::TraceEntry&) { ++tracked; });
  calls::recordHistory(cuda, true, noStack);
  expect(cuda.isHistoryEnabled(), "recordHistory(), isHistoryEnabled()");
  expect(calls::userMetadata(cuda, "text") == "text", "setUserMetadata(), getUserMetadata()");
  std::string compiling = "compiling";
  cuda.pushCompileContext(compiling);
  void* const block = cuda.raw_alloc_with_stream(kBytes, nullptr);
  cuda.popCompileContext();
  cuda.recordAnnotation({{"name", "value"}});
  expect(calls::hasContext(cuda, block), "getContextForPointer()");
  const bool noted = calls::annotate(cuda, block, "note");
  const theirs::SnapshotInfo snapshot = cuda.snapshot();
  cuda.raw_delete(block);
  std::size_t total = 0, allocated = 0;
  for (const auto& segment : snapshot.segments) {
    total += segment.total_size;
    allocated += segment.allocated_size;
  }
  expect(allocated == kBytes, "snapshot(): allocated_size");
  expect(std::int64_t(total) == current(cuda.getDeviceStats(0).reserved_bytes),
         "snapshot(): total_size");
  expect(snapshot.external_annotations.size() == 1, "recordAnnotation()");
  const auto* const made = find(snapshot, Action::ALLOC);
  expect(made != nullptr && made->size_ == kBytes && made->context_ != nullptr,
         "snapshot(): the event of an allocation");
  expect(made->compile_context_ == "compiling", "pushCompileContext()");
  const auto* const note = noted ? find(snapshot, kAnnotate) : nullptr;
  expect(!noted || (note != nullptr && note->addr_ == made->addr_), "annotateMemory()");
  expect(tracked > 0, "attachAllocatorTraceTracker()");
  calls::recordHistory(cuda, false, nullptr);
  expect(!cuda.isHistoryEnabled(), "recordHistory(): off");
}

void testPools(theirs::CUDAAllocator& cuda) {
  cuda.createOrIncrefPool(0, kPool);
  expect(cuda.getPoolUseCount(0, kPool) == 1, "createOrIncrefPool(), getPoolUseCount()");
  calls::setUseOnOOM(cuda, kPool);
  calls::setNoSplit(cuda, kPool);
  calls::markCapture(cuda);
  if (c10::cuda::device_count() > 0) {  // a region asks for the current stream
    cuda.beginAllocateToPool(0, kPool, [](cudaStream_t) { return true; });
    void* const block = cuda.raw_alloc_with_stream(kBytes, nullptr);
    cuda.endAllocateToPool(0, kPool);
    expect(calls::reservedIn(cuda, kPool) >= std::int64_t(kBytes),
           "reserved_bytes_by_private_pools");
    expect(cuda.checkPoolLiveAllocations(0, kPool, {block}), "beginAllocateToPool()");
    for (const auto& segment : cuda.snapshot(kPool).segments)
      expect(calls::orderOf(segment) >= 0, "snapshot(): registration_counter");
    cuda.raw_delete(block);
    cuda.releasePool(0, kPool);
  }
  expect(cuda.checkPoolLiveAllocations(0, kPool, {}), "checkPoolLiveAllocations()");
  const auto checkpoint = cuda.getCheckpointState(0, kPool);
  const auto changed = cuda.setCheckpointPoolState(0, checkpoint);
  expect(changed.ptrs_freed.empty() && changed.dataptrs_allocd.empty(), "setCheckpointPoolState()");
  cuda.releasePool(0, kPool);
  expect(cuda.getPoolUseCount(0, kPool) == 0, "releasePool()");
}

void testOthers(theirs::CUDAAllocator& cuda) {
  int foreign = 0;
  expectError<c10::Error>([&] { (void)cuda.shareIpcHandle(&foreign); }, "shareIpcHandle()");
  expectError<std::exception>([&] { (void)cuda.getIpcDevPtr("no handle"); }, "getIpcDevPtr()");
  cuda.enablePeerAccess(0, 0);
  (void)cuda.memcpyAsync(nullptr, 0, nullptr, 0, 0, nullptr, false);
}

void testPinned(at::HostAllocator& host) {
  {
    const c10::DataPtr block = host.allocate(kBytes);
    expect(block.get() != nullptr, "the host's allocate()");
    const c10::Stream stream(c10::Stream::DEFAULT, c10::Device(c10::kCUDA, 0));
    expect(host.record_event(block.get(), block.get_context(), stream), "record_event()");
    int foreign = 0;
    expect(!host.record_event(&foreign, nullptr, stream), "record_event() of a foreign pointer");
    expect(host.get_stats().num_host_alloc == 1, "get_stats()");
  }
  expect(calls::recordsHostHistory(host, noStack),
         "record_history(), get_segments(), get_traces()");
  host.reset_accumulated_stats();
  host.reset_peak_stats();
  host.empty_cache();
  expect(host.get_stats().allocated_bytes.current == 0, "empty_cache()");
}

/// Empty, or what is wrong. `differs`: an answer was wrong, and no call failed.
std::string testAll(bool& differs) {
  try {
    useDevice();
    theirs::CUDAAllocator& cuda = *theirs::get();
    testBlocks(cuda);
    testFigures(cuda);
    testLimit(cuda);
    testReports(cuda);
    testPools(cuda);
    testOthers(cuda);
    testPinned(*at::getHostAllocator(at::kCUDA));
    return "";
  } catch (const Failed& failed) {
    differs = true;
    return failed.text + " is not as it should be";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace
}  // namespace cistern_torch

/// Null, or what is wrong. `differs` is then whether an answer was wrong. If not, a call failed, as
/// on a machine without a driver. Once a process, after cistern_torch_install.
CISTERN_TORCH_CALL const char* cistern_torch_self_test(bool* differs) {
  static const std::string& wrong = *new std::string(cistern_torch::testAll(*differs));
  return wrong.empty() ? nullptr : wrong.c_str();
}
