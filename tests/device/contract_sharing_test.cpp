// The device contract: pages that other processes and other devices use.
#include <fcntl.h>
#include <unistd.h>

#include "tests/device/contract_support.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/skipped.hpp"

namespace cistern::test {
namespace {

/// A descriptor that is closed at the end of the scope.
class ScopedDescriptor {
 public:
  explicit ScopedDescriptor(int number) : number_(number) {}
  ~ScopedDescriptor() { (void)close(number_); }
  ScopedDescriptor(const ScopedDescriptor&) = delete;
  ScopedDescriptor& operator=(const ScopedDescriptor&) = delete;
  operator int() const { return number_; }  // NOLINT: it stands for its number

 private:
  int number_;
};

sim::SimConfig withPeers(int ordinal, std::vector<int> peers) {
  sim::SimConfig config;
  config.ordinal = ordinal;
  config.peers = std::move(peers);
  return config;
}

/// What is written by one of the two addresses is read by the other. Pre: `here` is mapped and
/// filled with 5, and `imported` is the page behind it.
void checkOneMemory(DeviceWork& work, ScopedPages& pages, Address here, Address there,
                    std::uint64_t bytes, Page imported) {
  pages.map(there, bytes, imported);
  work.verify(Stream{}, there, bytes, 5);
  work.fill(Stream{}, there, bytes, 6);
  work.verify(Stream{}, here, bytes, 6);
  CHECK(work.mismatches() == 0);
  pages.unmap(there, bytes);
  work.device().releasePage(imported).orThrow();
}

sim::SimConfig withFabric() {
  sim::SimConfig config;
  config.fabric = true;
  return config;
}

}  // namespace

CONTRACT_TEST("an imported page is the memory that was exported", "[contract][vmm][sharing]",
              work) {
  Device& device = work.device();
  if (!device.virtualMemory().exportable) return skipped("no sharing on " + device.backend());
  ScopedPages pages(device);
  const std::uint64_t bytes = 4 * pages.granularity();
  const Address here = pages.reserve(bytes), there = pages.reserve(bytes);
  const Page page = pages.page(bytes);
  pages.map(here, bytes, page);
  work.fill(Stream{}, here, bytes, 5);
  device.synchronizeDevice().orThrow();
  const ScopedDescriptor descriptor(device.exportPage(page).orThrow());
  CHECK((fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0);
  const Page imported = device.importPage(descriptor).orThrow();
  checkOneMemory(work, pages, here, there, bytes, imported);
}

CONTRACT_TEST("exported memory lives as long as its descriptor", "[contract][vmm][sharing]", work) {
  Device& device = work.device();
  if (!device.virtualMemory().exportable) return skipped("no sharing on " + device.backend());
  ScopedPages pages(device);
  const std::uint64_t bytes = 2 * pages.granularity();
  const Address range = pages.reserve(bytes);
  const Page page = pages.page(bytes);
  pages.map(range, bytes, page);
  work.fill(Stream{}, range, bytes, 9);
  device.synchronizeDevice().orThrow();
  const ScopedDescriptor descriptor(device.exportPage(page).orThrow());
  pages.unmap(range, bytes);
  pages.release(page);
  const Page again = device.importPage(descriptor).orThrow();
  pages.map(range, bytes, again);
  work.verify(Stream{}, range, bytes, 9);
  CHECK(work.mismatches() == 0);
  pages.unmap(range, bytes);
  device.releasePage(again).orThrow();
}

CONTRACT_TEST("what is no page is neither exported nor imported", "[contract][vmm][sharing]",
              work) {
  Device& device = work.device();
  if (!device.virtualMemory().exportable) return skipped("no sharing on " + device.backend());
  const ScopedDescriptor file(open("/dev/null", O_RDWR | O_CLOEXEC));
  CHECK_FALSE(device.importPage(file).ok());
  CHECK_FALSE(device.importPage(-1).ok());
}

// What a device without a fabric says, and what one with it gives.
static void checkFabric(DeviceWork& work) {
  Device& device = work.device();
  ScopedPages pages(device);
  const std::uint64_t bytes = pages.granularity();
  const Page page = pages.page(bytes);
  const Result<FabricHandle> handle = device.exportToFabric(page);
  if (!device.virtualMemory().fabric) {
    REQUIRE_FALSE(handle.ok());
    CHECK(handle.error().kind == ErrorKind::kNotSupported);
    CHECK(device.importFromFabric({}).error().kind == ErrorKind::kNotSupported);
    return;
  }
  CHECK(device.virtualMemory().exportable);
  const Address here = pages.reserve(bytes), there = pages.reserve(bytes);
  pages.map(here, bytes, page);
  work.fill(Stream{}, here, bytes, 5);
  device.synchronizeDevice().orThrow();
  const Page imported = device.importFromFabric(handle.value()).orThrow();
  checkOneMemory(work, pages, here, there, bytes, imported);
  CHECK_FALSE(device.importFromFabric({}).ok());
}

CONTRACT_TEST("a page has a name on the fabric, or the device says that there is none",
              "[contract][vmm][sharing]", work) {
  Device& device = work.device();
  if (!device.virtualMemory().supported) return skipped("no pages on " + device.backend());
  checkFabric(work);
}

TEST_CASE("a simulated device with a fabric names its pages", "[sharing][sim]") {
  SimWork work(withFabric());
  REQUIRE(work.device().virtualMemory().fabric);
  checkFabric(work);
}

TEST_CASE("a page's name is good in another process, while the page lives", "[sharing][sim]") {
  SimWork work(withFabric());
  Device& device = work.device();
  constexpr std::uint64_t kBytes = 2 * kMiB;
  const Address range = device.reserve(kBytes).orThrow();
  const Page page = device.createPage(kBytes).orThrow();
  device.map(range, kBytes, page).orThrow();
  device.setAccess(range, kBytes).orThrow();
  work.fill(Stream{}, range, kBytes, 3);
  CHECK(work.mismatches() == 0);  // it has run
  const FabricHandle name = device.exportToFabric(page).orThrow();
  CHECK(device.exportToFabric(page).orThrow() == name);
  CHECK(statusOfChild([&] {
          SimWork other(withFabric());
          const Address there = other.device().reserve(kBytes).orThrow();
          const Page same = other.device().importFromFabric(name).orThrow();
          other.device().map(there, kBytes, same).orThrow();
          other.device().setAccess(there, kBytes).orThrow();
          other.verify(Stream{}, there, kBytes, 3);
          other.fill(Stream{}, there, kBytes, 4);
          std::_Exit(other.mismatches() == 0 ? 0 : 1);
        }) == 0);
  work.verify(Stream{}, range, kBytes, 4);
  CHECK(work.mismatches() == 0);
  device.releasePage(page).orThrow();
  CHECK_FALSE(device.exportToFabric(page).ok());  // not held
  device.releasePage(device.importFromFabric(name).orThrow()).orThrow();
  device.unmap(range, kBytes).orThrow();
  CHECK_FALSE(device.importFromFabric(name).ok());
  device.freeReservation(range, kBytes).orThrow();
}

CONTRACT_TEST("a device admits itself, and again", "[contract][sharing]", work) {
  CHECK(work.device().admitPeer(work.device().ordinal()).ok());
  CHECK(work.device().admitPeer(work.device().ordinal()).ok());
}

CONTRACT_TEST("a peer that is none is refused", "[contract][sharing]", work) {
  CHECK_FALSE(work.device().admitPeer(63).ok());
  CHECK_FALSE(work.device().admitPeer(-1).ok());
}

TEST_CASE("two simulated devices share an exported page", "[sharing][sim]") {
  SimWork from, to;
  ScopedPages own(from.device()), others(to.device());
  const std::uint64_t bytes = 2 * kMiB;
  const Address here = own.reserve(bytes), there = others.reserve(bytes);
  const Page page = own.page(bytes);
  own.map(here, bytes, page);
  const ScopedDescriptor descriptor(from.device().exportPage(page).orThrow());
  const Page imported = to.device().importPage(descriptor).orThrow();
  others.map(there, bytes, imported);
  CHECK(to.device().memoryInfo().orThrow().free_bytes ==
        to.device().memoryInfo().orThrow().total_bytes);
  from.fill(Stream{}, here, bytes, 3);
  CHECK(from.mismatches() == 0);  // it has run
  to.verify(Stream{}, there, bytes, 3);
  to.fill(Stream{}, there, bytes, 4);
  CHECK(to.mismatches() == 0);
  from.verify(Stream{}, here, bytes, 4);
  CHECK(from.mismatches() == 0);
  others.unmap(there, bytes);
  to.device().releasePage(imported).orThrow();
}

TEST_CASE("without virtual memory nothing is exported", "[sharing][sim]") {
  sim::SimConfig config;
  config.virtual_memory = false;
  SimWork work(config);
  CHECK_FALSE(work.device().virtualMemory().exportable);
  const auto page = work.device().exportPage(Page{1});
  REQUIRE_FALSE(page.ok());
  CHECK(page.error().kind == ErrorKind::kNotSupported);
}

TEST_CASE("a peer reaches what is mapped when it is admitted, and later", "[sharing][sim]") {
  SimWork work(withPeers(0, {1}));
  Device& device = work.device();
  ScopedPages pages(device);
  const std::uint64_t bytes = 2 * kMiB;
  const Address range = pages.reserve(4 * bytes);
  pages.map(range, bytes, pages.page(bytes));
  pages.mapOnly(range + bytes, bytes, pages.page(bytes));
  const ScopedMemory malloced(device, bytes);
  CHECK_FALSE(work.sim().peerReaches(1, range, bytes));
  CHECK_FALSE(work.sim().peerReaches(1, malloced, bytes));
  device.admitPeer(1).orThrow();
  CHECK(work.sim().peerReaches(1, range, bytes));
  CHECK(work.sim().peerReaches(1, malloced, bytes));
  CHECK_FALSE(work.sim().peerReaches(1, range + bytes, bytes));  // nobody may use it yet
  device.setAccess(range + bytes, bytes).orThrow();
  pages.map(range + 2 * bytes, bytes, pages.page(bytes));
  CHECK(work.sim().peerReaches(1, range, 3 * bytes));
  CHECK_FALSE(work.sim().peerReaches(2, range, bytes));
  CHECK_FALSE(work.sim().peerReaches(1, range, 4 * bytes));
  const auto refused = device.admitPeer(2);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().kind == ErrorKind::kNotSupported);
}

}  // namespace cistern::test
