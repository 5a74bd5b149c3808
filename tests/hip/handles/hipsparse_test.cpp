// hipSPARSE, which Debian has, through Cistern's getter: AMD's library on AMD's runtime, on two
// played GPUs.
#include <thread>

#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <hipsparse/hipsparse.h>

#include "cistern/current.hpp"
#include "cistern/error.hpp"
#include "cistern/handles/hip.hpp"
#include "tests/hip/device/kernel_table.h"
#include "tests/support/catch.hpp"

using namespace cistern;

namespace {

// rocSPARSE launches a kernel that does nothing for each handle, to see that kernels can run.
[[maybe_unused]] const bool is_played = [] {
  auto* const stand_in =
      reinterpret_cast<PlayedKernelFunction*>(dlsym(RTLD_DEFAULT, "playedKernel"));
  if (stand_in != nullptr)
    stand_in(
        "_ZL11init_kernelv", [](const PlayedLaunch*) {}, nullptr);
  return stand_in != nullptr;
}();

Stream made() {
  hipStream_t stream = nullptr;
  REQUIRE(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking) == hipSuccess);
  return Stream{reinterpret_cast<std::uintptr_t>(stream)};
}

std::uintptr_t streamOf(hipsparseHandle_t handle) {
  hipStream_t stream = nullptr;
  REQUIRE(hipsparseGetStream(handle, &stream) == HIPSPARSE_STATUS_SUCCESS);
  return reinterpret_cast<std::uintptr_t>(stream);
}

}  // namespace

TEST_CASE("a thread has one handle of hipSPARSE, on its current stream at each call") {
  hipsparseHandle_t const handle = getCurrentHipsparseHandle();
  REQUIRE(handle != nullptr);
  CHECK(streamOf(handle) == 0);
  const Stream one = made(), other = made();
  {
    const StreamGuard guard(one);
    CHECK(getCurrentHipsparseHandle() == handle);
    CHECK(streamOf(handle) == one.raw);
    const StreamGuard inner(other);
    CHECK(getCurrentHipsparseHandle() == handle);
    CHECK(streamOf(handle) == other.raw);
  }
  CHECK(getCurrentHipsparseHandle() == handle);
  CHECK(streamOf(handle) == 0);
}

TEST_CASE("threads that live at once have handles of their own, which later threads get") {
  hipsparseHandle_t mine = getCurrentHipsparseHandle(), theirs = nullptr, later = nullptr;
  std::thread([&] { theirs = getCurrentHipsparseHandle(); }).join();
  std::thread([&] { later = getCurrentHipsparseHandle(); }).join();
  CHECK(theirs != mine);
  CHECK(later == theirs);
}

TEST_CASE("each device has a handle of its own, and the current device stays what it is") {
  hipsparseHandle_t const here = getCurrentHipsparseHandle();
  int device = -1;
  {
    const DeviceGuard guard(1);
    hipsparseHandle_t const there = getCurrentHipsparseHandle();
    CHECK(there != here);
    CHECK(streamOf(there) == 0);
  }
  REQUIRE(hipGetDevice(&device) == hipSuccess);
  CHECK(device == 0);
  CHECK(getCurrentHipsparseHandle() == here);
}

TEST_CASE("a device that is not there is refused, and changes nothing") {
  CHECK_THROWS_AS(DeviceGuard(5), Error);
  int device = -1;
  REQUIRE(hipGetDevice(&device) == hipSuccess);
  CHECK(device == 0);
}

TEST_CASE("handles are counted") {
  (void)getCurrentHipsparseHandle();
  bool found = false;
  for (const HandleStats& one : handleStatistics()) {
    if (one.library != "hipSPARSE" || one.device != 0) continue;
    found = true;
    CHECK(one.handles.live >= 1);
    CHECK(one.handles.created ==
          one.handles.live + one.handles.free + one.handles.destroyed + one.handles.leaked);
  }
  CHECK(found);
}
