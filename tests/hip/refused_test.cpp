// One call to HIP's device after the other is refused, wherever a program is: no verb ends the
// process, a free never fails, and in the end all memory goes back.
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/engine/engine_support.hpp"
#include "tests/support/forwarding_device.hpp"
#include "tests/support/vendor_work.hpp"

namespace cistern::test {
namespace {

/// Refuses one call: the device behind does not get it.
class RefusingDevice final : public ForwardingDevice<RefusingDevice> {
 public:
  RefusingDevice(Device& behind, std::uint64_t which, ErrorKind kind)
      : ForwardingDevice(behind), which_(which), kind_(kind) {}

  template <class Forward>
  auto through(Call call, Forward forward) -> decltype(forward(behind_)) {
    if (++calls_ == which_) return DeviceError{call, kind_, 1, "refused", "by the test"};
    return forward(behind_);
  }
  bool refused() const { return calls_ >= which_; }

 private:
  const std::uint64_t which_;
  const ErrorKind kind_;
  std::uint64_t calls_ = 0;
};

/// Blocks of two streams, one of them used on the other too; what is refused is left out.
void program(DeviceWork& work, CachingAllocator& allocator, const Streams& streams) {
  std::vector<void*> held;
  for (std::size_t i = 0; i < 8; ++i) {
    const std::size_t bytes = (1 + i % 4) * kMiB;
    void* block = nullptr;
    try {
      block = allocator.allocate(bytes, streams[i % 2]);
      work.fill(streams[i % 2], toAddress(block), bytes, std::uint32_t(i));
      work.verify(streams[i % 2], toAddress(block), bytes, std::uint32_t(i));
      held.push_back(block);
      if (i % 3 == 0) allocator.recordStream(block, streams[1 - i % 2]);
      if (i % 4 == 3) allocator.emptyCache();
    } catch (const Error&) {
      // A verb that fails says so; the next ones work.
    }
    if (held.size() > 2) {
      CHECK_NOTHROW(allocator.free(held.front()));
      held.erase(held.begin());
    }
  }
  for (void* block : held) CHECK_NOTHROW(allocator.free(block));
}

}  // namespace

namespace {

/// A program on an allocator of its own, which may be refused itself.
void run(DeviceWork& work, RefusingDevice& device, const Streams& streams) try {
  CachingAllocator allocator(device, optionsOf("thread_cache:off,background_thread:false"));
  program(work, allocator, streams);
  CHECK(work.mismatches() == 0);
  allocator.audit();
  for (int times = 0; times < 2; ++times) {
    try {
      allocator.emptyCache();
    } catch (const Error&) {
      CHECK(times == 0);
    }
  }
  CHECK(reservedOf(allocator) == 0);
} catch (const Error&) {
  CHECK(device.refused());
}

}  // namespace

TEST_CASE("any one call to HIP may be refused, wherever a program is") {
  const auto work = hipWork();
  REQUIRE(work != nullptr);
  Device& hip = work->device();
  const Streams streams(hip, 2);
  const std::uint64_t free_bytes = hip.memoryInfo().orThrow().free_bytes;
  for (const auto& [kind, stride] :
       {std::pair(ErrorKind::kOther, 1), {ErrorKind::kOutOfMemory, 3}}) {
    bool refused = true;
    std::uint64_t which = 1;
    for (; refused; which += std::uint64_t(stride)) {
      INFO("call " << which << " of kind " << int(kind));
      RefusingDevice device(hip, which, kind);
      run(*work, device, streams);
      refused = device.refused();
    }
    CHECK(which > 20);
  }
  // HIP keeps what is freed until it has seen the end of its last use. It comes back, or the test
  // does not end.
  while (hip.memoryInfo().orThrow().free_bytes < free_bytes) hip.synchronizeDevice().orThrow();
}

}  // namespace cistern::test
