// Fabric handles of the CUDA backend, on a GPU whose driver is given a fabric.
#include <algorithm>
#include <vector>

#include <cuda_runtime_api.h>

#include "allocator/device/vendor/vendor.hpp"
#include "cistern/allocator.hpp"
#include "tests/gpu/cuda/fabric/driver_with_fabric.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skipped.hpp"

namespace cistern::test {
namespace {

/// Null where there is no GPU.
std::unique_ptr<Device> deviceWith(Fabric fabric) {
  setFabric(fabric);
  if (!cuda::deviceCount().ok()) return nullptr;
  return cuda::open(0).orThrow();
}

bool holds(const void* memory, unsigned char value, std::size_t bytes) {
  std::vector<unsigned char> host(bytes);
  if (cudaMemcpy(host.data(), memory, bytes, cudaMemcpyDefault) != cudaSuccess) return false;
  return std::all_of(host.begin(), host.end(), [&](unsigned char byte) { return byte == value; });
}

}  // namespace

TEST_CASE("a block is opened by its pages' fabric handles alone", "[gpu]") {
  const auto mine = deviceWith(Fabric::kOpen), theirs = deviceWith(Fabric::kOpen);
  if (mine == nullptr) return skipped("no GPU");
  REQUIRE(mine->virtualMemory().fabric);
  CachingAllocator from(*mine), to(*theirs);
  constexpr std::size_t kBytes = 30 * kMiB;
  void* const block = from.allocate(kBytes, Stream{});
  REQUIRE(cudaMemset(block, 1, kBytes) == cudaSuccess);
  auto exported = from.exportBlock(block);
  BlockExport sent = *exported;
  for (SharedPage& page : sent.pages) {
    REQUIRE(page.fabric);
    page.descriptor = -1;
  }
  const auto base = to.openImport(sent.pages);
  void* const there = static_cast<std::byte*>(base.get()) + sent.offset;
  CHECK(holds(there, 1, kBytes));
  REQUIRE(cudaMemset(there, 2, kBytes) == cudaSuccess);
  CHECK(holds(block, 2, kBytes));
  from.free(block);
  exported = nullptr;
  from.emptyCache();
  CHECK(holds(there, 2, kBytes));
  sent.pages.front().fabric = FabricHandle{};
  CHECK_THROWS_AS(to.openImport(sent.pages), DeviceFailure);
}

TEST_CASE("where no page can be named on the fabric, pages go by descriptor", "[gpu]") {
  const Fabric fabric = GENERATE(Fabric::kNoHandle, Fabric::kRefused, Fabric::kUnknown);
  const auto mine = deviceWith(fabric), theirs = deviceWith(fabric);
  if (mine == nullptr) return skipped("no GPU");
  CHECK_FALSE(mine->virtualMemory().fabric);
  REQUIRE(mine->virtualMemory().exportable);
  CachingAllocator from(*mine), to(*theirs);
  void* const block = from.allocate(3 * kMiB, Stream{});
  REQUIRE(cudaMemset(block, 1, 3 * kMiB) == cudaSuccess);
  const auto exported = from.exportBlock(block);
  CHECK_FALSE(exported->pages.front().fabric);
  const auto base = to.openImport(exported->pages);
  CHECK(holds(static_cast<std::byte*>(base.get()) + exported->offset, 1, 3 * kMiB));
  from.free(block);
}

}  // namespace cistern::test
