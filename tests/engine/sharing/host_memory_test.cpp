// Where the host is short of memory nothing is exported or opened, and nothing is left behind.
#include <new>

#include "tests/engine/sharing/sharing_support.hpp"
#include "tests/support/quiet_device.hpp"

#if defined(CISTERN_COUNTS_HOST_MEMORY)

namespace cistern::test {
namespace {

/// Makes the thing with ever more host memory, until it is made. Returns how often it was not.
template <class Make>
int withEverMoreMemory(Make make) {
  for (int allowed = 0;; ++allowed) {
    try {
      int left = allowed;
      const AtHostAllocations few([&] {
        if (left-- == 0) throw std::bad_alloc();
      });
      make();
      return allowed;
    } catch (const std::bad_alloc&) {
    }
  }
}

}  // namespace

TEST_CASE("an export that there is no host memory for holds nothing", "[engine][pages][sharing]") {
  QuietDevice device(simOf(kGiB));
  CachingAllocator allocator(device, optionsOf("backing:pages"));
  void* const block = allocator.allocate(60 * kMiB);
  (void)allocator.exportBlock(block);  // a simulated page has its own file from here on
  const std::size_t descriptors = openDescriptors();
  CHECK(withEverMoreMemory([&] { (void)allocator.exportBlock(block); }) > 2);
  CHECK(openDescriptors() == descriptors);
  allocator.audit();
  allocator.free(block);
  allocator.emptyCache();
  CHECK(takenOf(device) == 0);
}

TEST_CASE("an import that there is no host memory for is not there", "[engine][pages][sharing]") {
  SimRig from("backing:pages");
  QuietDevice device(simOf(kGiB));
  CachingAllocator allocator(device, optionsOf("backing:pages"));
  void* const block = from.allocator.allocate(60 * kMiB);
  const auto exported = from.allocator.exportBlock(block);
  const std::size_t descriptors = openDescriptors();
  std::shared_ptr<void> base;
  CHECK(withEverMoreMemory([&] { base = allocator.openImport(exported->pages); }) > 2);
  base = nullptr;
  CHECK(openDescriptors() == descriptors);
  device.sim().audit();
  from.allocator.free(block);
}

}  // namespace cistern::test

#endif
