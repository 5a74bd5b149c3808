#include "allocator/layout/block_map.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include "allocator/layout/block_slabs.hpp"
#include "tests/support/catch.hpp"

namespace cistern {
namespace {

using SmallTagMap = BasicBlockMap<6>;  // its tables outgrow the tag at 64 slots

// The map under test beside one of the standard library.
template <class Map>
class Mapped {
 public:
  void insert(Address address) {
    Block* block = pool_.take();
    block->granule = (address >> kGranuleShift) & ((std::uint64_t{1} << 48) - 1);
    block->setState(BlockState::kAllocated);
    map.prepare();
    map.insert(*block);
    wanted[address] = block;
  }
  void erase(Address address) {
    Block* block = wanted.at(address);
    map.erase(*block);
    pool_.give(block);
    wanted.erase(address);
  }
  bool agreesOn(Address address) const {
    const auto found = wanted.find(address);
    return map.find(address) == (found == wanted.end() ? nullptr : found->second);
  }

  Map map;
  std::unordered_map<Address, Block*> wanted;

 private:
  BlockSlabs pool_;
};

constexpr Address kLowest = Address{1} << 40;

TEMPLATE_TEST_CASE("the map agrees with a standard one through growth and many erasures", "",
                   BlockMap, SmallTagMap) {
  Mapped<TestType> both;
  std::vector<Address> inside;
  std::mt19937_64 random(2);
  for (int phase = 0; phase < 20; ++phase) {
    const unsigned erase_of_10 = phase % 2 ? 7 : 2;
    for (int step = 0; step < 5'000; ++step) {
      const Address address = kLowest + random() % 8'192 * kGranule;
      if (random() % 10 < erase_of_10) {
        if (inside.empty()) continue;
        std::swap(inside[random() % inside.size()], inside.back());
        both.erase(inside.back());
        REQUIRE(both.agreesOn(inside.back()));
        inside.pop_back();
      } else if (!both.wanted.contains(address)) {
        both.insert(address);
        inside.push_back(address);
      }
      REQUIRE(both.agreesOn(address));
    }
    both.map.audit();
    REQUIRE(both.map.size() == both.wanted.size());
  }
}

TEMPLATE_TEST_CASE("nothing is lost when a table grows past what a tag can say", "", BlockMap,
                   SmallTagMap) {
  Mapped<TestType> both;
  for (Address i = 0; i < 400; ++i) {
    both.insert(kLowest + i * i * kGranule);
    both.map.audit();
    for (Address j = 0; j <= i; ++j) REQUIRE(both.agreesOn(kLowest + j * j * kGranule));
  }
  for (Address i = 0; i < 400; i += 2) {
    both.erase(kLowest + i * i * kGranule);
    both.map.audit();
  }
  for (Address i = 0; i < 400; ++i) REQUIRE(both.agreesOn(kLowest + i * i * kGranule));
}

TEST_CASE("addresses a power of two apart spread over the table") {
  for (unsigned shift = kGranuleShift; shift <= 34; ++shift) {
    Mapped<BlockMap> both;
    for (Address i = 0; i < 1'000; ++i) both.insert(kLowest + (i << shift));
    for (Address i = 0; i < 1'000; ++i) REQUIRE(both.agreesOn(kLowest + (i << shift)));
    for (Address i = 0; i < 1'000; ++i) both.erase(kLowest + (i << shift));
    both.map.audit();
    CHECK(both.map.size() == 0);
  }
}

TEST_CASE("an empty map finds nothing and holds no memory") {
  BlockMap map;
  CHECK(map.find(kLowest) == nullptr);
  CHECK(map.size() == 0);
  CHECK(map.hostBytes() == 0);
  map.audit();
}

// ---- peek --------------------------------------------------------------------------------------

TEMPLATE_TEST_CASE("peek finds what is there and is allocated, and nothing else", "", BlockMap,
                   SmallTagMap) {
  Mapped<TestType> both;
  CHECK(both.map.peek(kLowest) == nullptr);
  for (Address i = 0; i < 500; ++i) both.insert(kLowest + i * 3 * kGranule);
  for (Address i = 0; i < 500; i += 5)
    both.wanted.at(kLowest + i * 3 * kGranule)->setState(BlockState::kFree);
  for (Address i = 1; i < 500; i += 5) both.erase(kLowest + i * 3 * kGranule);
  for (Address i = 0; i < 1'500; ++i) {
    const auto found = both.wanted.find(kLowest + i * kGranule);
    const bool there =
        found != both.wanted.end() && found->second->state() == BlockState::kAllocated;
    REQUIRE(both.map.peek(kLowest + i * kGranule) == (there ? found->second : nullptr));
  }
}

// The reader's blocks stand still, as those of a program do that has not freed them; around them
// the owner makes the tables grow, and blocks of other addresses come and go.
TEST_CASE("peek gives the block or nothing while the owner changes the map") {
  constexpr Address kHeld = 200, kAround = 20'000;
  Mapped<BlockMap> both;
  std::vector<Block*> held;
  for (Address i = 0; i < kHeld; ++i) {
    both.insert(kLowest + i * 7 * kGranule);
    held.push_back(both.wanted.at(kLowest + i * 7 * kGranule));
  }
  constexpr std::uint64_t kAtRest = 1'000;  // looks of each reader before anything changes
  std::atomic<bool> done{false};
  std::atomic<int> reading{0};
  std::array<std::uint64_t, 2> wrong{}, missed{}, looks{};
  std::vector<std::thread> readers;
  for (std::size_t reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&, reader] {
      for (Address i = 0; !done.load(std::memory_order_relaxed); i = (i + 1) % kHeld) {
        const Block* const block = both.map.peek(kLowest + i * 7 * kGranule);
        if (++looks[reader] == kAtRest) ++reading;
        missed[reader] += block == nullptr;
        wrong[reader] += block != nullptr && block != held[i];
        wrong[reader] += both.map.peek(kLowest + i * 7 * kGranule + kGranule / 2) != nullptr;
      }
    });
  }
  while (reading != 2) std::this_thread::yield();  // a busy machine may run them late
  const Address base = kLowest + (Address{1} << 30);
  for (int round = 0; round < 3; ++round) {
    for (Address i = 0; i < kAround; ++i) both.insert(base + i * kGranule);
    for (Address i = 0; i < kAround; ++i) both.erase(base + i * kGranule);
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  for (std::size_t reader = 0; reader < 2; ++reader) {
    CHECK(wrong[reader] == 0);
    CHECK(looks[reader] >= kAtRest);
    CHECK(missed[reader] <= looks[reader] / 10);
  }
  for (Address i = 0; i < kHeld; ++i) CHECK(both.map.peek(kLowest + i * 7 * kGranule) == held[i]);
}

TEST_CASE("records are reused, the last given first, and lie on cache lines of their own") {
  BlockSlabs pool;
  std::vector<Block*> taken;
  for (int i = 0; i < 1'000; ++i) {
    taken.push_back(pool.take());
    REQUIRE(taken.back()->state() == BlockState::kUnused);
    REQUIRE(reinterpret_cast<std::uintptr_t>(taken.back()) % 64 == 0);
  }
  const std::size_t bytes = pool.hostBytes();
  CHECK(bytes <= 1'000 * sizeof(Block) * 5 / 4 + 16 * sizeof(Block));
  for (Block* block : taken) pool.give(block);
  for (std::size_t i = taken.size(); i-- > 0;) REQUIRE(pool.take() == taken[i]);
  CHECK(pool.hostBytes() == bytes);
}

}  // namespace
}  // namespace cistern
