// The first hook for memory comes while other threads change what there is, and hooks take each
// other away.
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/engine/engine_support.hpp"
#include "tests/support/forwarding_device.hpp"

namespace cistern::test {
namespace {

/// What a hook knows of, in bytes.
MemoryHook counting(std::int64_t& bytes) {
  return [&bytes](const MemoryNotice& notice) {
    const bool comes = notice.change == MemoryChange::kMapped;
    bytes += comes ? std::int64_t(notice.bytes) : -std::int64_t(notice.bytes);
  };
}

/// Does not take back what is freed while `on_free` is set, which it calls once.
class Refusing final : public ForwardingDevice<Refusing> {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::function<void()> on_free;

 private:
  Result<void> doFree(Address address) override {
    if (!on_free) return behind_.free(address);
    std::exchange(on_free, nullptr)();
    return DeviceError{Call::kFree, ErrorKind::kOther, 0, "refused", {}};
  }
};

}  // namespace

TEST_CASE("a hook that another hook has detached is not called", "[engine][hooks]") {
  HookId second{};
  bool detached = false;
  int called_after = 0;
  SimRig rig("background_thread:false");  // whose end calls hooks
  rig.allocator.attachMemoryHook([&](const MemoryNotice&) {
    if (second.number == 0 || detached) return;
    rig.allocator.detach(second);
    detached = true;
  });
  second = rig.allocator.attachMemoryHook([&](const MemoryNotice&) { called_after += detached; });
  rig.allocator.free(rig.allocator.allocate(8 * kMiB));
  CHECK(detached);
  CHECK(called_after == 0);
}

TEST_CASE("the first hook hears of a segment that goes from heap to heap meanwhile",
          "[engine][hooks][threads]") {
  SimRig rig("backing:segments,background_thread:false,limit:40MiB");
  const Streams streams(rig.allocator, 40);
  rig.allocator.free(rig.allocator.allocate(40 * kMiB, streams[0]));
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> turns{0};
  std::thread moving([&] {
    for (; !stop; ++turns)
      rig.allocator.free(rig.allocator.allocate(40 * kMiB, streams[turns * 7 % 40]));
  });
  int missed = 0;
  for (int i = 0; i < 10'000; ++i) {
    std::int64_t bytes = 0;
    const std::uint64_t made = countOf(rig.sim(), Call::kMalloc);
    const HookId hook = rig.allocator.attachMemoryHook(counting(bytes));
    rig.allocator.detach(hook);
    if (bytes == std::int64_t(40 * kMiB)) continue;
    // A segment that was on its way to the device need not be heard of: the next turn makes
    // another.
    for (const std::size_t now = turns; turns < now + 2;) std::this_thread::yield();
    missed += made == countOf(rig.sim(), Call::kMalloc);
  }
  stop = true;
  moving.join();
  CHECK(missed == 0);
}

TEST_CASE("the first hook does not hear that an import is there which has gone",
          "[engine][hooks][threads]") {
  SimRig owner("backing:pages"), rig("backing:pages,background_thread:false");
  void* const block = owner.allocator.allocate(2 * kMiB);
  const auto exported = owner.allocator.exportBlock(block);
  std::vector<std::shared_ptr<void>> imports;
  std::size_t wrong = 0;
  for (int round = 0; round < 12; ++round) {
    while (imports.size() < 1'000) imports.push_back(rig.allocator.openImport(exported->pages));
    std::map<Address, std::uint64_t> heard;
    std::atomic<bool> begun{false};
    std::thread dropping([&] {
      for (int i = 0; i < 300; ++i) {
        imports.pop_back();
        begun = true;
      }
    });
    while (!begun) std::this_thread::yield();
    const HookId hook = rig.allocator.attachMemoryHook([&](const MemoryNotice& notice) {
      if (notice.change == MemoryChange::kMapped)
        heard[notice.address] = notice.bytes;
      else
        heard.erase(notice.address);
    });
    dropping.join();
    rig.allocator.emptyCache();
    wrong += heard.size() != imports.size();
    rig.allocator.detach(hook);
  }
  imports.clear();
  CHECK(wrong == 0);
  owner.allocator.free(block);
}

TEST_CASE("a first hook that comes while the device refuses a segment hears of it",
          "[engine][hooks]") {
  std::int64_t heard = 0;
  SimWork work(simOf(kGiB));
  Refusing device(work.device());
  CachingAllocator allocator(device, optionsOf("backing:segments,background_thread:false"));
  allocator.free(allocator.allocate(40 * kMiB));
  device.on_free = [&] {
    std::thread([&] { allocator.attachMemoryHook(counting(heard)); }).join();
  };
  allocator.emptyCache();
  allocator.free(allocator.allocate(40 * kMiB));
  CHECK(heard == reservedOf(allocator));
  CHECK(heard == std::int64_t(40 * kMiB));
}

}  // namespace cistern::test
