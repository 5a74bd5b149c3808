// Records in slabs: each its own, aligned as its type is, and had again once it was removed.
#include "allocator/engine/pages/slabs.hpp"

#include <cstdint>
#include <set>
#include <vector>

#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

struct alignas(64) Record {
  inline static int alive = 0;
  Record() { ++alive; }
  ~Record() { --alive; }
  std::uint64_t value = 7;
};

}  // namespace

TEST_CASE("records in slabs are apart, aligned, and used again", "[engine]") {
  pages::Slabs<Record> slabs;
  std::vector<Record*> made;
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    made.push_back(&slabs.make());
    CHECK(made.back()->value == 7);
    made.back()->value = i;
  }
  const std::set<Record*> places(made.begin(), made.end());
  CHECK(places.size() == 1'000);
  CHECK(Record::alive == 1'000);
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    CHECK(made[i]->value == i);
    CHECK(reinterpret_cast<std::uintptr_t>(made[i]) % alignof(Record) == 0);
  }
  const std::size_t bytes = slabs.hostBytes();
  CHECK(bytes >= 1'000 * sizeof(Record));
  for (std::size_t i = 0; i < 500; ++i) slabs.remove(*made[i]);
  CHECK(Record::alive == 500);
  for (std::size_t i = 0; i < 500; ++i) {
    made[i] = &slabs.make();
    CHECK(places.count(made[i]) == 1);
    CHECK(made[i]->value == 7);
  }
  CHECK(std::set<Record*>(made.begin(), made.end()).size() == 1'000);
  CHECK(slabs.hostBytes() == bytes);
  for (Record* record : made) slabs.remove(*record);
  CHECK(Record::alive == 0);
}

}  // namespace cistern::test
