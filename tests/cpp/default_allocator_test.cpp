// The allocators that a process shares. They stay for the whole process, so every case here leaves
// them as it found them: with nothing allocated.
#include <array>
#include <set>
#include <thread>

#include "allocator/base/current_device.hpp"
#include "cistern/memory.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/skipped.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

/// Whether there are devices beside the first: simulated ones there are, real ones rarely.
bool severalDevices() { return allocator().device().backend() == "sim"; }

std::int64_t heldOn(int device) {
  return allocator(device).memoryStats()[Stat::kAllocation].current;
}

}  // namespace

TEST_CASE("two calls are all that a program needs", "[cpp]") {
  void* const first = cistern::allocate(kMiB, Stream{});
  REQUIRE(first != nullptr);
  CHECK(allocator().blockSize(first) >= kMiB);
  cistern::free(first);
  const CallCounts before = allocator().device().callCounts();
  cistern::free(cistern::allocate(kMiB));
  CHECK(allocator().device().callCounts() == before);
  cistern::free(nullptr);
  CHECK(cistern::allocate(0, Stream{}) == nullptr);
  CHECK(heldOn(0) == 0);
}

TEST_CASE("there is one allocator a device, whoever asks first", "[cpp][threads]") {
  if (!severalDevices()) return skipped("not on the simulated device");
  std::array<CachingAllocator*, 8> found{};
  onThreads(found.size(), [&](std::size_t i) { found[i] = &allocator(3); });
  CHECK(std::set<CachingAllocator*>(found.begin(), found.end()).size() == 1);
  CHECK(&pools(3).allocator() == found[0]);
  CHECK(allocator(3).device().ordinal() == 3);
}

TEST_CASE("a block is of the device that is current, and freed whatever is", "[cpp]") {
  if (!severalDevices()) return skipped("not on the simulated device");
  const int home = currentDevice();
  void* blocks[3] = {};
  for (const int device : {0, 1, 2}) {
    const DeviceGuard on(device);
    blocks[device] = cistern::allocate(3 * kMiB, Stream{});
    CHECK(heldOn(device) == 1);
  }
  CHECK(currentDevice() == home);
  {
    const DeviceGuard on(1);
    cistern::free(blocks[2]);
    cistern::free(blocks[0]);
  }
  cistern::free(blocks[1]);
  for (const int device : {0, 1, 2}) CHECK(heldOn(device) == 0);
}

TEST_CASE("a block of another device is freed though no guard ever chose that", "[cpp]") {
  if (!severalDevices()) return skipped("not on the simulated device");
  detail::another_device = false;  // as in a process that has had no guard
  void* const block = allocator(4).allocate(kMiB, Stream{});
  cistern::free(block);
  CHECK(heldOn(4) == 0);
}

TEST_CASE("a block is told of another stream, whichever device is current", "[cpp]") {
  if (!severalDevices()) return skipped("not on the simulated device");
  CachingAllocator& there = allocator(1);
  const Stream own = there.device().createStream().orThrow();
  const Stream other = there.device().createStream().orThrow();
  void* const block = there.allocate(kMiB, own);
  cistern::recordStream(block, other);
  cistern::free(block);
  CHECK(heldOn(1) == 0);
  for (const Stream stream : {own, other}) {
    there.forgetStream(stream);
    there.device().destroyStream(stream).orThrow();
  }
}

TEST_CASE("a pointer that is no allocator's is reported, and nothing happens", "[cpp]") {
  Misuse seen;
  allocator().setMisuseHook([&](const Misuse& misuse) { seen = misuse; });
  int local = 0;
  cistern::free(&local);
  CHECK(seen.kind == MisuseKind::kForeignPointer);
  CHECK(seen.pointer == toAddress(&local));

  void* const block = cistern::allocate(kMiB, Stream{});
  cistern::free(block);
  cistern::free(block);
  CHECK(seen.kind == MisuseKind::kDoubleFree);
  allocator().setMisuseHook({});
  CHECK(heldOn(0) == 0);
}

TEST_CASE("a device that there is not is named, and can be asked for again", "[cpp]") {
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS_AS(allocator(64), InvalidArgument);
    CHECK_THROWS_AS(allocator(-1), InvalidArgument);
    CHECK_THROWS_AS(allocator(40), InvalidArgument);  // in range, and not here
  }
}

TEST_CASE("options come from the environment, and a bad one is named", "[cpp]") {
  if (!severalDevices()) return skipped("not on the simulated device");
  const int status = statusOfChild([] {
    setenv("CISTERN_CONF", "limit:64MiB", 1);
    if (allocator(5).limit() != 64 * kMiB) _exit(1);
    setenv("CISTERN_CONF", "limmit:64MiB", 1);
    try {
      (void)allocator(6);
      _exit(2);
    } catch (const OptionError&) {
    }
    setenv("CISTERN_CONF", "", 1);
    cistern::free(allocator(5).allocate(512, Stream{}));
    (void)allocator(6);
  });
  CHECK(status == 0);
}

TEST_CASE("the environment says which backend it is", "[cpp]") {
  const int status = statusOfChild([] {
    setenv("CISTERN_BACKEND", "sim", 1);
    if (allocator(5).device().backend() != "sim") _exit(1);
    setenv("CISTERN_BACKEND", "vulkan", 1);
    try {
      (void)allocator(6);
      _exit(2);
    } catch (const InvalidArgument& error) {
      if (std::string_view(error.what()).find("CISTERN_BACKEND: ") != 0) _exit(3);
    }
    setenv("CISTERN_BACKEND", "auto", 1);
    cistern::free(allocator(5).allocate(512, Stream{}));
  });
  CHECK(status == 0);
}

TEST_CASE("the backend of the environment is what auto opens, and no other name", "[cpp]") {
  const int status = statusOfChild([] {
    setenv("CISTERN_BACKEND", "sim", 1);
    if (openDevice("auto", 5)->backend() != "sim") _exit(1);
    setenv("CISTERN_BACKEND", "Sim", 1);
    if (openDevice("sim", 5)->backend() != "sim") _exit(2);
    try {
      (void)openDevice();
      _exit(3);
    } catch (const InvalidArgument& error) {
      const std::string_view said = error.what();
      if (said.find("CISTERN_BACKEND: unknown backend 'Sim': must be auto, ") != 0) _exit(4);
      if (!said.ends_with("; did you mean sim?")) _exit(5);
    }
  });
  CHECK(status == 0);
}

TEST_CASE("a static object may free when the process ends", "[cpp]") {
  // A real device's context does not survive the fork.
  if (!severalDevices()) return skipped("not on the simulated device");
  const int status = statusOfChild([] {
    struct Last {
      void* block = nullptr;
      ~Last() { cistern::free(block); }
    };
    static Last last;
    last.block = allocator(7).allocate(kMiB, Stream{});  // device 0's is the parent's
  });
  CHECK(status == 0);
}

TEST_CASE("threads share the process's allocators", "[cpp][threads]") {
  const int devices = severalDevices() ? 2 : 1;
  onThreads(8, [&](std::size_t t) {
    const DeviceGuard on(int(t) % devices);
    for (int i = 0; i < 130; ++i) {
      void* const block = cistern::allocate(std::size_t(512 + i), Stream{});
      if (i % 3 == 0) {
        std::thread([block] { cistern::free(block); }).join();
      } else {
        cistern::free(block);
      }
    }
  });
  for (int device = 0; device < devices; ++device) {
    CHECK(heldOn(device) == 0);
    allocator(device).audit();
  }
}

}  // namespace cistern::test
