#include "interop/command/overflow/bus_meter.hpp"

#include <map>

#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

using command::Held;

/// Blocks lie where the test says. Block n is at the address n + 1.
class ScriptedPolicy final : public command::OverflowPolicy {
 public:
  void* allocate(std::size_t bytes, Stream) override {
    if (bytes == 0) return nullptr;
    void* const pointer = reinterpret_cast<void*>(++given_);  // NOLINT: never followed
    places_[pointer] = next_;
    bytes_[pointer] = bytes;
    return pointer;
  }
  void free(const Held& block) override { places_.erase(block.pointer); }
  command::ReservedBytes reserved() const override { return {}; }
  std::uint64_t hostBytesIn(const void* block) const override {
    return places_.at(block) == Location::kHost ? bytes_.at(block) : 0;
  }
  std::uint64_t settle() override {
    for (const auto& [block, place] : settles_) places_.at(block) = place;
    settles_.clear();
    return moves_;
  }

  void nextLiesAt(Location place) { next_ = place; }
  void move(const void* block, Location place) { places_.at(block) = place; }
  /// So many bytes of what lies there do.
  void setHostBytes(const void* block, std::uint64_t bytes) { bytes_.at(block) = bytes; }
  void settleTo(const void* block, Location place, std::uint64_t moved) {
    settles_[block] = place;
    moves_ = moved;
  }

 private:
  std::uintptr_t given_ = 0;
  Location next_ = Location::kDevice;
  std::map<const void*, Location> places_;
  std::map<const void*, std::uint64_t> bytes_;  ///< in host memory, of what lies there
  std::map<const void*, Location> settles_;
  std::uint64_t moves_ = 0;
};

/// A program of iterations of ten events each, and its meter.
struct Metered {
  std::vector<std::size_t> starts{0, 10, 20};
  ScriptedPolicy policy;
  command::BusMeter meter{policy, starts};
  std::size_t events = 0;

  Metered() { meter.look(); }
  void* allocate(std::size_t bytes, Location place) {
    policy.nextLiesAt(place);
    void* const block = meter.allocate(bytes, Stream{});
    step();
    return block;
  }
  void free(void* block, std::uint64_t bytes) {
    meter.free({block, bytes, Stream{}});
    step();
  }
  void step() {
    ++events;
    meter.stepped({});
  }
  /// Goes on to the next iteration, with allocations enough that no block of before is short-lived.
  void nextIteration() {
    policy.nextLiesAt(Location::kDevice);
    for (std::uint64_t i = 0; i < command::kShortLife; ++i)
      meter.free({meter.allocate(1, Stream{}), 1, Stream{}});
    do step();
    while (events % 10 != 0);
  }
  const command::BusBytes& in(std::size_t iteration) { return meter.iterations().at(iteration); }
};

}  // namespace

TEST_CASE("a block on the device costs nothing, and one in host memory twice its bytes") {
  Metered m;
  m.allocate(100, Location::kDevice);
  CHECK(m.meter.allocate(0, Stream{}) == nullptr);
  CHECK(m.in(0).total() == 0);
  m.allocate(30, Location::kHost);
  CHECK(m.in(0).used == 60);
  CHECK(m.in(0).moved == 0);
}

TEST_CASE("a block that stays in host memory costs in each iteration") {
  Metered m;
  void* const block = m.allocate(30, Location::kHost);
  m.nextIteration();
  m.nextIteration();
  m.free(block, 30);
  REQUIRE(m.meter.iterations().size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(m.in(i).used == 60);
}

TEST_CASE("the part of a block that lies in host memory counts alone") {
  Metered m;
  void* const block = m.allocate(100, Location::kDevice);
  m.policy.move(block, Location::kHost);
  m.policy.setHostBytes(block, 30);
  m.nextIteration();
  CHECK(m.in(0).moved == 30);
  CHECK(m.in(1).used == 60);
  m.policy.setHostBytes(block, 10);
  m.nextIteration();
  CHECK(m.in(1).moved == 20);
  CHECK(m.in(2).used == 20);
}

TEST_CASE("the last iteration goes on to the end") {
  Metered m;
  for (int i = 0; i < 5; ++i) m.nextIteration();
  CHECK(m.meter.iterations().size() == 3);
}

TEST_CASE("a block that was moved to the host is copied there once, and read once") {
  Metered m;
  void* const freed = m.allocate(100, Location::kDevice);
  void* const kept = m.allocate(40, Location::kDevice);
  m.policy.move(freed, Location::kHost);
  m.policy.move(kept, Location::kHost);
  m.free(freed, 100);
  m.nextIteration();
  CHECK(m.in(0).used == 140);
  CHECK(m.in(0).moved == 140);
  CHECK(m.in(1).used == 80);
  m.policy.move(kept, Location::kDevice);
  m.free(kept, 40);
  CHECK(m.in(1).moved == 40);
}

TEST_CASE("what settle moves counts once, in the iteration that it comes before") {
  Metered m;
  void* const out = m.allocate(100, Location::kDevice);
  void* const home = m.allocate(30, Location::kHost);
  m.policy.settleTo(out, Location::kHost, 100);
  m.policy.settleTo(home, Location::kDevice, 130);
  m.nextIteration();
  CHECK(m.in(0).total() == 60);
  CHECK(m.in(1).moved == 130);
  CHECK(m.in(1).used == 200);
}

TEST_CASE("the bytes of blocks that are freed soon are told apart") {
  Metered m;
  void* const brief = m.allocate(50, Location::kHost);
  void* const kept = m.allocate(20, Location::kHost);
  m.free(brief, 50);
  CHECK(m.in(0).of_short_lives == 100);
  m.nextIteration();
  m.free(kept, 20);
  CHECK(m.in(1).of_short_lives == 0);
}

TEST_CASE("what is freed after the end counts no more") {
  Metered m;
  void* const block = m.allocate(50, Location::kDevice);
  m.meter.look();
  m.policy.move(block, Location::kHost);
  m.free(block, 50);
  CHECK(m.in(0).total() == 0);
  CHECK(m.in(0).of_short_lives == 0);
}

}  // namespace cistern::test
