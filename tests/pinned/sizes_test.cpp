// What is pinned for which requests, and what is counted.
#include <map>
#include <vector>

#include "tests/pinned/pinned_support.hpp"

namespace cistern::test {

TEST_CASE("sizes that grow leave nothing behind", "[pinned]") {
  PinnedRig rig;
  std::uint64_t bytes = 4 * kMiB;
  for (int i = 0; i < 300; ++i, bytes += bytes / 100) rig.pinned.free(rig.pinned.allocate(bytes));
  CHECK(std::uint64_t(rig.pinned.stats().reserved_bytes.peak) < bytes + 2 * kMiB);
  CHECK(rig.pinned.stats().segment.current == 1);
}

}  // namespace cistern::test
