// The statistics as names and numbers.
#include <set>

#include "cistern/statistics.hpp"
#include "tests/engine/engine_support.hpp"

namespace cistern::test {
namespace {

std::int64_t valueOf(const std::vector<StatRow>& rows, const std::string& name) {
  for (const StatRow& row : rows) {
    if (row.name == name) return row.value;
  }
  FAIL("no row " << name);
  return -1;
}

}  // namespace

TEST_CASE("the rows have every number of the statistics, under PyTorch's names", "[engine]") {
  SimRig rig;
  void* small = rig.allocator.allocate(kKiB);
  void* large = rig.allocator.allocate(4 * kMiB);
  rig.allocator.free(large);
  const std::vector<StatRow> rows = statRows(rig.allocator.memoryStats());
  CHECK(valueOf(rows, "allocated_bytes.all.current") == std::int64_t(kKiB));
  CHECK(valueOf(rows, "allocated_bytes.all.peak") == std::int64_t(kKiB + 4 * kMiB));
  CHECK(valueOf(rows, "allocated_bytes.small_pool.allocated") == std::int64_t(kKiB));
  CHECK(valueOf(rows, "allocated_bytes.large_pool.freed") == std::int64_t(4 * kMiB));
  CHECK(valueOf(rows, "allocation.all.allocated") == 2);
  CHECK(valueOf(rows, "reserved_bytes.all.current") == reservedOf(rig.allocator));
  CHECK(valueOf(rows, "num_ooms") == 0);
  CHECK(valueOf(rows, "peaks_exact") == 1);
  CHECK(valueOf(rows, "host_bytes") > 0);
  rig.allocator.free(small);
}

TEST_CASE("the rows are named once each, and the same whatever has happened", "[engine]") {
  const auto namesOf = [](const MemoryStats& stats) {
    std::vector<std::string> names;
    for (const StatRow& row : statRows(stats)) names.push_back(row.name);
    return names;
  };
  SimRig rig("", simOf(64 * kMiB));
  const std::vector<std::string> before = namesOf(rig.allocator.memoryStats());
  CHECK_THROWS_AS(rig.allocator.allocate(kGiB), OutOfMemory);
  CHECK(namesOf(rig.allocator.memoryStats()) == before);
  CHECK(std::set<std::string>(before.begin(), before.end()).size() == before.size());
  CHECK(before.size() == kStatCount * 3 * 4 + 6 + 6 + 8);
}

TEST_CASE("rows as JSON are one object, its names escaped", "[engine]") {
  CHECK(toJson({}) == "{}");
  CHECK(toJson({{"a.current", 1}, {"b", -2}}) == R"({"a.current":1,"b":-2})");
  CHECK(toJson({{"say \"\\\"\n", 0}}) == R"({"say \"\\\"\u000a":0})");
}

}  // namespace cistern::test
