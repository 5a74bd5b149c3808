// What HIP 6.4 does not say: a page that it could not map.
#include <sys/resource.h>

#include "tests/support/catch.hpp"
#include "tests/support/vendor_work.hpp"

namespace cistern::test {
namespace {

/// No descriptor more, for a scope. The runtime maps a page by one.
class WithoutDescriptors {
 public:
  WithoutDescriptors() {
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &(none_ = {3, before_.rlim_max})) == 0);
  }
  ~WithoutDescriptors() { (void)setrlimit(RLIMIT_NOFILE, &before_); }
  WithoutDescriptors(const WithoutDescriptors&) = delete;
  WithoutDescriptors& operator=(const WithoutDescriptors&) = delete;

 private:
  rlimit before_{}, none_{};
};

}  // namespace

TEST_CASE("to unmap a page that was not mapped, which nobody said, is refused") {
  const auto work = hipWork();
  REQUIRE(work != nullptr);
  Device& device = work->device();
  REQUIRE(device.virtualMemory().supported);
  constexpr std::size_t kBytes = std::size_t{2} << 20;
  const Address range = device.reserve(2 * kBytes).orThrow();
  const Page first = device.createPage(kBytes).orThrow();
  const Page second = device.createPage(kBytes).orThrow();
  device.map(range, kBytes, first).orThrow();
  {
    const WithoutDescriptors none;
    CHECK(device.map(range + kBytes, kBytes, second).ok());
  }
  CHECK(!device.setAccess(range, 2 * kBytes).ok());
  CHECK(!device.unmap(range, 2 * kBytes).ok());
  CHECK(!device.unmap(range + kBytes, kBytes).ok());
  device.setAccess(range, kBytes).orThrow();
  work->fill({}, range, kBytes, 1);
  work->verify({}, range, kBytes, 1);
  CHECK(work->mismatches() == 0);
  device.unmap(range, kBytes).orThrow();
  device.releasePage(first).orThrow();
  device.releasePage(second).orThrow();
  device.freeReservation(range, 2 * kBytes).orThrow();
}

}  // namespace cistern::test
