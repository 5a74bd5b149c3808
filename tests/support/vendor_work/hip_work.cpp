// HIP test work: real kernels on one device, or what stands for them on a played one.
#include <algorithm>

#include "allocator/device/vendor/alias.hpp"
#include "allocator/device/vendor/vendor.hpp"
#include "tests/support/vendor_work.hpp"
#include "tests/support/vendor_work/hip_kernels.hpp"

namespace cistern::test {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::size_t kMostBlocks = 2048;

void require(hipError_t error, Call call, const char* what) {
  if (error == hipSuccess) return;
  (void)hip::hipGetLastError();
  throw DeviceFailure({call, ErrorKind::kOther, int(error), hip::errorName(error), what});
}

/// The thread's current device, for a scope.
class OnDevice {
 public:
  explicit OnDevice(int ordinal) {
    require(hip::hipGetDevice(&former_), Call::kMalloc, "asking for the current device");
    require(hip::hipSetDevice(ordinal), Call::kMalloc, "making a device current");
  }
  ~OnDevice() { (void)hip::hipSetDevice(former_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int former_ = 0;
};

void launch(TestKernel kernel, Stream stream, std::size_t count, void** parameters) {
  static auto* const launcher =
      reinterpret_cast<decltype(&::hipLaunchKernel)>(runtimeFunction("hipLaunchKernel"));
  const std::size_t wanted = std::max<std::size_t>((count + kThreads - 1) / kThreads, 1);
  const dim3 blocks(unsigned(std::min(wanted, kMostBlocks)));
  require(launcher(launchable(kernel), blocks, dim3(kThreads), parameters, 0,
                   reinterpret_cast<hipStream_t>(stream.raw)),
          Call::kLaunchGraph, "launching a test kernel");
}

class HipWork final : public DeviceWork {
 public:
  // Each kernel runs once now, because loading one during a capture would break it.
  explicit HipWork(std::unique_ptr<Device> device) : device_(std::move(device)) {
    const OnDevice scope(device_->ordinal());
    require(hip::hipMalloc(&wrong_, sizeof(std::uint64_t)), Call::kMalloc, "the counter");
    require(hip::hipMemsetAsync(wrong_, 0, sizeof(std::uint64_t), nullptr), Call::kMalloc,
            "clearing the counter");
    const Address word = toAddress(wrong_);
    fill(Stream{}, word, sizeof(std::uint32_t), 0);
    verify(Stream{}, word, sizeof(std::uint32_t), 0);
    delay(Stream{}, 0);
    require(hip::hipDeviceSynchronize(), Call::kSynchronizeDevice, "running the kernels once");
  }
  ~HipWork() override { (void)hip::hipFree(wrong_); }

  Device& device() override { return *device_; }
  // Not in HIP 5.2 and 6.4: malloc is allowed, and a stream that joins goes on recording after the
  // end.
  bool capturesAreStrict() override { return false; }
  bool refusesWrongMappings() override { return false; }

  bool isPlayed() override { return isPlayedGpu(); }

  void fill(Stream stream, Address address, std::size_t bytes, std::uint32_t seed) override {
    const OnDevice scope(device_->ordinal());
    std::size_t count = bytes / sizeof(std::uint32_t);
    if (count == 0) return;
    void* parameters[] = {&address, &count, &seed};
    launch(TestKernel::kFill, stream, count, parameters);
  }
  void verify(Stream stream, Address address, std::size_t bytes, std::uint32_t seed) override {
    const OnDevice scope(device_->ordinal());
    std::size_t count = bytes / sizeof(std::uint32_t);
    if (count == 0) return;
    void* parameters[] = {&address, &count, &wrong_, &seed};
    launch(TestKernel::kVerify, stream, count, parameters);
  }
  std::uint64_t mismatches() override {
    const OnDevice scope(device_->ordinal());
    std::uint64_t wrong = 0;
    require(hip::hipDeviceSynchronize(), Call::kSynchronizeDevice, "running the test kernels");
    require(hip::hipMemcpyAsync(&wrong, wrong_, sizeof(wrong), hipMemcpyDeviceToHost, nullptr),
            Call::kSynchronizeDevice, "reading the counter of wrong words");
    require(hip::hipStreamSynchronize(nullptr), Call::kSynchronizeDevice, "reading the counter");
    return wrong;
  }
  void delay(Stream stream, std::uint64_t nanoseconds) override {
    const OnDevice scope(device_->ordinal());
    void* parameters[] = {&nanoseconds};
    launch(TestKernel::kDelay, stream, 1, parameters);
  }

 private:
  std::unique_ptr<Device> device_;
  void* wrong_ = nullptr;
};

}  // namespace

std::unique_ptr<DeviceWork> hipWork(int ordinal) {
  const Result<int> count = hip::deviceCount();
  if (!count && count.error().kind == ErrorKind::kNoDevice) return nullptr;
  if (count && ordinal >= count.value()) return nullptr;
  return std::make_unique<HipWork>(hip::open(ordinal).orThrow());
}

}  // namespace cistern::test
