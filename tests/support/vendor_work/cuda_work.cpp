// CUDA test work: real kernels on one device. Only in builds with nvcc.
#include <cuda_runtime_api.h>

#include "allocator/device/vendor/vendor.hpp"
#include "tests/support/vendor_work.hpp"
#include "tests/support/vendor_work/cuda_kernels.hpp"

namespace cistern::test {
namespace {

cudaStream_t handleOf(Stream stream) { return reinterpret_cast<cudaStream_t>(stream.raw); }
std::uint32_t* wordsAt(Address address) { return static_cast<std::uint32_t*>(toPointer(address)); }

void require(cudaError_t error, Call call, const char* what) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();
  throw DeviceFailure({call, ErrorKind::kOther, int(error), cudaGetErrorName(error), what});
}

/// The runtime launches on the thread's current device: that one for a scope, then the former.
class OnDevice {
 public:
  explicit OnDevice(int ordinal) {
    require(cudaGetDevice(&former_), Call::kMalloc, "asking for the current device");
    require(cudaSetDevice(ordinal), Call::kMalloc, "making a device current");
  }
  ~OnDevice() { (void)cudaSetDevice(former_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int former_ = 0;
};

class CudaWork final : public DeviceWork {
 public:
  // Loading the kernels now, because to load one during a capture would break it, and clearing the
  // counter with them makes sure that they run on this machine at all.
  explicit CudaWork(std::unique_ptr<Device> device) : device_(std::move(device)) {
    const OnDevice scope = onDevice();
    void* counter = nullptr;
    require(cudaMalloc(&counter, sizeof(*wrong_)), Call::kMalloc, "the counter of wrong words");
    wrong_ = static_cast<unsigned long long*>(counter);
    require(cudaMemset(wrong_, 0, sizeof(*wrong_)), Call::kMalloc, "clearing the counter");
    auto* words = static_cast<std::uint32_t*>(counter);
    fill(Stream{}, toAddress(words), sizeof(*words), 0);
    verify(Stream{}, toAddress(words), sizeof(*words), 0);
    delay(Stream{}, 0);
    require(cudaDeviceSynchronize(), Call::kSynchronizeDevice, "running the test kernels once");
  }
  // A test that failed may leave the device in any state; there is nothing to report it to.
  ~CudaWork() override { (void)cudaFree(wrong_); }

  Device& device() override { return *device_; }

  void fill(Stream stream, Address address, std::size_t bytes, std::uint32_t seed) override {
    const OnDevice scope = onDevice();
    const std::size_t count = bytes / sizeof(std::uint32_t);
    require(launchFill(handleOf(stream), wordsAt(address), count, seed), Call::kLaunchGraph,
            "launching the test kernel fill");
  }

  void verify(Stream stream, Address address, std::size_t bytes, std::uint32_t seed) override {
    const OnDevice scope = onDevice();
    const std::size_t count = bytes / sizeof(std::uint32_t);
    require(launchVerify(handleOf(stream), wordsAt(address), count, seed, wrong_),
            Call::kLaunchGraph, "launching the test kernel verify");
  }

  std::uint64_t mismatches() override {
    const OnDevice scope = onDevice();
    unsigned long long wrong = 0;
    require(cudaDeviceSynchronize(), Call::kSynchronizeDevice, "running the test kernels");
    require(cudaMemcpy(&wrong, wrong_, sizeof(wrong), cudaMemcpyDeviceToHost),
            Call::kSynchronizeDevice, "reading the counter of wrong words");
    return wrong;
  }

  void delay(Stream stream, std::uint64_t nanoseconds) override {
    const OnDevice scope = onDevice();
    require(launchDelay(handleOf(stream), nanoseconds), Call::kLaunchGraph,
            "launching the test kernel delay");
  }

 private:
  OnDevice onDevice() const { return OnDevice(device_->ordinal()); }

  std::unique_ptr<Device> device_;
  unsigned long long* wrong_ = nullptr;
};

}  // namespace

std::unique_ptr<DeviceWork> cudaWork(int ordinal) {
  const Result<int> count = cuda::deviceCount();
  if (!count && (!cuda::kTableEntry.compiled_in || count.error().kind == ErrorKind::kNoDevice))
    return nullptr;
  if (count && ordinal >= count.value()) return nullptr;
  return std::make_unique<CudaWork>(cuda::open(ordinal).orThrow());
}

}  // namespace cistern::test
