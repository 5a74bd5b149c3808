// How much one settle moves, from the figures of steps.
#include "allocator/engine/settling/amount.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

constexpr std::uint64_t kMi = 1 << 20;

/// A program whose steps need so much of the device. Of that it cannot serve `lost` bytes. A step
/// that does not fit has a block of `block` bytes on the host.
struct Stepper {
  std::uint64_t need, block, lost = 0, capacity = 1000 * kMi, on_host = 0;
  std::uint64_t ns_of_overflow = 0, ns_of_host = 0;  // more than 100 ms
  SettleNotes notes{};

  /// Whether the step overflowed.
  bool step() {
    const bool over = need > capacity - lost + on_host;
    const SettleAmount amount = amountOf(
        notes, {.over = over ? block : 0,
                .need = need,
                .capacity = capacity,
                .on_host = on_host,
                .ns = 100'000'000 + (over ? ns_of_overflow : 0) + (on_host > 0 ? ns_of_host : 0)});
    CHECK((amount.to_host == 0 || amount.to_device == 0));
    CHECK(amount.to_host <= block);
    CHECK(amount.to_device <= on_host);
    on_host += amount.to_host - amount.to_device;
    return over;
  }
  int overflowsIn(int steps) {
    int number = 0;
    for (int i = 0; i < steps; ++i) number += step() ? 1 : 0;
    return number;
  }
};

}  // namespace

TEST_CASE("a settle moves what does not fit, and not the block that was too large",
          "[engine][settle]") {
  Stepper program{.need = 1100 * kMi, .block = 400 * kMi};
  CHECK(program.overflowsIn(50) == 2);
  CHECK(program.on_host == 100 * kMi);
}

TEST_CASE("a settle learns what the device cannot serve", "[engine][settle]") {
  for (const std::uint64_t lost : {3 * kMi, 30 * kMi, 200 * kMi}) {
    Stepper program{.need = 1100 * kMi, .block = 400 * kMi, .lost = lost};
    CHECK(program.overflowsIn(200) <= 24);
    CHECK(program.overflowsIn(20000) <= 60);  // it tries to forget that, ever more seldom
    CHECK(program.on_host >= 100 * kMi + lost);
    CHECK(program.on_host <= 100 * kMi + 2 * lost + 10 * kMi);
  }
}

TEST_CASE("a settle forgets what the device could not serve once", "[engine][settle]") {
  Stepper program{.need = 1100 * kMi, .block = 400 * kMi, .lost = 300 * kMi};
  (void)program.overflowsIn(100);
  program.lost = 0;
  program.need = 990 * kMi;
  CHECK(program.overflowsIn(20000) == 0);
  CHECK(program.on_host <= 10 * kMi);
}

TEST_CASE("one step that needs more moves nothing", "[engine][settle]") {
  Stepper program{.need = 900 * kMi, .block = 400 * kMi};
  CHECK(program.overflowsIn(5) == 0);
  program.need = 1200 * kMi;
  CHECK(program.overflowsIn(1) == 1);
  program.need = 900 * kMi;
  CHECK(program.overflowsIn(5) == 0);
  CHECK(program.on_host == 0);
}

TEST_CASE("what steps leave free comes home, and no more", "[engine][settle]") {
  Stepper program{.need = 1100 * kMi, .block = 400 * kMi};
  CHECK(program.overflowsIn(10) == 2);
  program.need = 1040 * kMi;
  CHECK(program.overflowsIn(20) == 0);
  CHECK(program.on_host == 40 * kMi);
  program.need = 500 * kMi;
  CHECK(program.overflowsIn(20) == 0);
  CHECK(program.on_host == 0);
}

TEST_CASE("what makes steps longer comes home, and goes ever more seldom", "[engine][settle]") {
  Stepper program{.need = 1100 * kMi,
                  .block = 400 * kMi,
                  .ns_of_overflow = 20'000'000,
                  .ns_of_host = 300'000'000};
  int on_host = 0;
  for (int i = 0; i < 1000; ++i) {
    (void)program.step();
    on_host += program.on_host > 0 ? 1 : 0;
  }
  CHECK(on_host <= 16);
  program.ns_of_overflow = 400'000'000;  // now it pays
  CHECK(program.overflowsIn(2000) <= 1030);
  CHECK(program.on_host == 100 * kMi);
}

TEST_CASE("steps by turns large and small come home ever more seldom", "[engine][settle]") {
  Stepper program{.need = 1100 * kMi, .block = 400 * kMi};
  int overflows = 0;
  for (int i = 0; i < 400; ++i) {
    program.need = (i % 6 < 3 ? 1100 : 700) * kMi;
    overflows += program.step() ? 1 : 0;
  }
  CHECK(overflows <= 20);
}

}  // namespace cistern::test
