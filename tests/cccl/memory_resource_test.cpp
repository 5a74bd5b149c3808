// Cistern as a resource of cuda::mr, under whichever CCCL the build has found.
#include "cistern-cccl/memory_resource.hpp"

#include <memory>
#include <type_traits>
#include <utility>

#include "cistern/sim.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

// The names that each version has for what takes a stream and what does not.
#if CCCL_VERSION >= 3001000
static_assert(cuda::mr::resource<MemoryResource>);
static_assert(cuda::mr::synchronous_resource<MemoryResource>);
static_assert(cuda::mr::resource_with<MemoryResource, cuda::mr::device_accessible>);
static_assert(!cuda::mr::resource_with<MemoryResource, cuda::mr::host_accessible>);
using Erased = cuda::mr::resource_ref<cuda::mr::device_accessible>;
#else
static_assert(cuda::mr::resource<MemoryResource> && cuda::mr::async_resource<MemoryResource>);
static_assert(cuda::mr::async_resource_with<MemoryResource, cuda::mr::device_accessible>);
static_assert(!cuda::mr::async_resource_with<MemoryResource, cuda::mr::host_accessible>);
using Erased = cuda::mr::async_resource_ref<cuda::mr::device_accessible>;
#endif
#if CCCL_VERSION >= 3002000
static_assert(MemoryResource::default_queries::has_property(cuda::mr::device_accessible{}));
#endif
static_assert(std::is_nothrow_copy_constructible_v<MemoryResource>);
static_assert(std::is_nothrow_copy_assignable_v<MemoryResource>);
static_assert(noexcept(std::declval<MemoryResource&>().deallocate_sync(nullptr, 0)));

constexpr std::uint64_t kLate = 1'000'000;  // ns

struct ResourceRig {
  std::unique_ptr<sim::SimulatedDevice> device = sim::makeDevice();
  CachingAllocator allocator{*device};
  MemoryResource resource{allocator};
  cuda::stream_ref first = stream(), second = stream();

  cuda::stream_ref stream() {
    return reinterpret_cast<cudaStream_t>(device->createStream().orThrow().raw);
  }
  void use(cuda::stream_ref on, void* memory, std::uint64_t lasting = kLate) {
    const sim::Access access{toAddress(memory), 512, sim::AccessKind::kWrite};
    device->launch(on.get(), {"use", {access}, lasting, {}}).orThrow();
  }
  std::int64_t held() const { return allocator.memoryStats()[Stat::kAllocation].current; }
  std::uint64_t calls(Call call) const { return device->callCounts()[std::size_t(call)]; }
};

}  // namespace

TEST_CASE("what a resource takes back serves its stream at once, in stream order", "[cccl]") {
  ResourceRig rig;
  void* const block = rig.resource.allocate(rig.first, 1'000);
  rig.use(rig.first, block);
  rig.resource.deallocate(rig.first, block, 1'000);
  CHECK(rig.resource.allocate(rig.first, 1'000) == block);
  rig.use(rig.first, block);
  CHECK(rig.device->races().empty());
  CHECK(rig.calls(Call::kSynchronizeStream) + rig.calls(Call::kSynchronizeDevice) == 0);
}

TEST_CASE("what a resource takes back on another stream waits for that one too", "[cccl]") {
  ResourceRig rig;
  void* const block = rig.resource.allocate(rig.first, 1'000);
  rig.use(rig.second, block);
  rig.resource.deallocate(rig.second, block, 1'000);
  void* const meanwhile = rig.resource.allocate(rig.first, 1'000);
  CHECK(meanwhile != block);
  rig.use(rig.first, meanwhile);
  CHECK(rig.device->races().empty());
  CHECK(rig.calls(Call::kSynchronizeStream) + rig.calls(Call::kSynchronizeDevice) == 0);
}

TEST_CASE("what a resource takes back on a stream that is gone waits for the device", "[cccl]") {
  ResourceRig rig;
  void* const block = rig.resource.allocate(rig.first, 1'000);
  rig.use(rig.second, block);
  rig.device->destroyStream(rig.second.get()).orThrow();
  rig.resource.deallocate(rig.second, block, 1'000);
  CHECK(rig.held() == 0);
  rig.use(rig.first, rig.resource.allocate(rig.first, 1'000));
  CHECK(rig.device->races().empty());
}

TEST_CASE("a resource refuses the per-thread default stream, and takes memory back on it",
          "[cccl]") {
  ResourceRig rig;
  const cuda::stream_ref per_thread = cudaStreamPerThread;
  CHECK_THROWS_AS(rig.resource.allocate(per_thread, 1'000), InvalidArgument);
  CHECK(rig.held() == 0);
  void* const block = rig.resource.allocate(rig.first, 1'000);
  const std::uint64_t waited = rig.calls(Call::kSynchronizeDevice);
  rig.resource.deallocate(per_thread, block, 1'000);
  CHECK(rig.calls(Call::kSynchronizeDevice) == waited + 1);
  CHECK(rig.held() == 0);
}

TEST_CASE("a resource takes cudaStreamLegacy for the default stream, which it names", "[cccl]") {
  ResourceRig rig;
  const cuda::stream_ref legacy = cudaStreamLegacy;
  const cuda::stream_ref null = cudaStream_t{nullptr};
  void* const block = rig.resource.allocate(legacy, 1'000);
  rig.use(null, block);
  rig.resource.deallocate(null, block, 1'000);
  CHECK(rig.resource.allocate(null, 1'000) == block);
  rig.use(null, block);
  rig.resource.deallocate(legacy, block, 1'000);
  CHECK(rig.resource.allocate(legacy, 1'000) == block);
  CHECK(rig.device->races().empty());
  CHECK(rig.calls(Call::kSynchronizeStream) + rig.calls(Call::kSynchronizeDevice) == 0);
}

TEST_CASE("memory without a stream may be used on each, at once", "[cccl]") {
  ResourceRig rig;
  void* const before = rig.allocator.allocate(1'000, Stream{});
  rig.use(cudaStream_t{nullptr}, before);
  rig.allocator.free(before);
  void* const block = rig.resource.allocate_sync(1'000);
  CHECK(block == before);
  rig.use(rig.first, block);
  CHECK(rig.device->races().empty());
  rig.device->synchronizeDevice().orThrow();
  rig.resource.deallocate_sync(block, 1'000);
  CHECK(rig.held() == 0);
}

TEST_CASE("memory that cannot be waited for is given back", "[cccl]") {
  ResourceRig rig;
  rig.device->faults().failNth(Call::kSynchronizeStream, 1, ErrorKind::kOther);
  CHECK_THROWS_AS(rig.resource.allocate_sync(1'000), DeviceFailure);
  CHECK(rig.held() == 0);
}

TEST_CASE("an alignment that cannot be had is refused", "[cccl]") {
  ResourceRig rig;
  for (const std::size_t alignment : {std::size_t{0}, std::size_t{96}, std::size_t{4} << 20}) {
    CHECK_THROWS_WITH(
        rig.resource.allocate(rig.first, 64, alignment),
        Catch::Matchers::ContainsSubstring("alignment is " + std::to_string(alignment)));
    CHECK_THROWS_AS(rig.resource.allocate_sync(64, alignment), InvalidArgument);
  }
  CHECK(rig.held() == 0);
  for (std::size_t alignment = 1; alignment <= MemoryResource::kMostAlignment; alignment *= 2)
    CHECK(toAddress(rig.resource.allocate(rig.first, 64, alignment)) % alignment == 0);
  CHECK(rig.resource.allocate(rig.first, 0) == nullptr);
  rig.resource.deallocate(rig.first, nullptr, 0);
}

TEST_CASE("a resource that is out of memory throws a std::bad_alloc with the report", "[cccl]") {
  ResourceRig rig;
  rig.allocator.setLimit(8 * kMiB);
  try {
    (void)rig.resource.allocate(rig.first, 64 * kMiB);
    FAIL("it was served");
  } catch (const std::bad_alloc& error) {
    CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring("64.00 MiB asked for"));
    CHECK(dynamic_cast<const ResourceOutOfMemory&>(error).report().requested == 64 * kMiB);
  }
  CHECK_THROWS_AS(rig.resource.allocate_sync(64 * kMiB), std::bad_alloc);
  CHECK(rig.held() == 0);
}

TEST_CASE("copies of a resource are alike, and take back what the other has given", "[cccl]") {
  ResourceRig rig;
  CachingAllocator other{*rig.device};
  MemoryResource copy = rig.resource;
  CHECK(copy == rig.resource);
  CHECK(copy != MemoryResource{other});
  copy.deallocate(rig.first, rig.resource.allocate(rig.first, 64), 64);
  CHECK(rig.held() == 0);
  copy = MemoryResource{other};
  CHECK(&copy.allocator() == &other);
}

#if CCCL_VERSION >= 3002000
TEST_CASE("CCCL's owners of a memory resource keep a copy, which takes back what it has given",
          "[cccl]") {
  ResourceRig rig;
  cuda::mr::any_resource<cuda::mr::device_accessible> any = rig.resource;
  auto shared = cuda::mr::make_shared_resource<MemoryResource>(rig.allocator);
  static_assert(cuda::mr::resource_with<decltype(shared), cuda::mr::device_accessible>);
  rig.resource.deallocate(rig.first, any.allocate(rig.first, 1'000, 256), 1'000);
  any.deallocate(rig.first, shared.allocate(rig.first, 1'000, 256), 1'000, 256);
  shared.deallocate_sync(any.allocate_sync(64, 256), 64, 256);
  CHECK(any == rig.resource);
  CHECK(rig.held() == 0);
}
#endif

TEST_CASE("a memory resource is used through CCCL's own erased resources", "[cccl]") {
  ResourceRig rig;
  Erased erased = rig.resource;
#if CCCL_VERSION >= 3001000
  void* const block = erased.allocate(rig.first, 1'000, 256);
  CHECK(rig.allocator.blockSize(block) == 1'024);
  erased.deallocate(rig.first, block, 1'000, 256);
  erased.deallocate_sync(erased.allocate_sync(64, 256), 64, 256);
#else
  void* const block = erased.allocate_async(1'000, 256, rig.first);
  CHECK(rig.allocator.blockSize(block) == 1'024);
  erased.deallocate_async(block, 1'000, 256, rig.first);
  erased.deallocate(erased.allocate(64, 256), 64, 256);
#endif
  CHECK(rig.held() == 0);
}

}  // namespace cistern::test
