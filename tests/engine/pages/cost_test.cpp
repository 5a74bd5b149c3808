// The controller that makes new pages larger when they have cost too much.
#include "allocator/engine/pages/pages_state.hpp"
#include "tests/engine/pages/pages_support.hpp"

namespace cistern::test {
namespace {

constexpr double kMs = 1e6;
constexpr std::uint64_t kSecond = 1'000'000'000;

}  // namespace

TEST_CASE("what a program takes beyond its share makes pages larger, and time smaller again",
          "[engine][part]") {
  pages::CostController controller(0.01);
  CHECK(controller.scale() == 1);
  controller.note(20 * kMs, 0, kSecond);  // nothing is earned before the first
  CHECK(controller.scale() == 2);
  controller.note(30 * kMs, 0, 2 * kSecond);  // of which 10 are the second's
  CHECK(controller.scale() == 4);
  controller.note(0, 0, 6 * kSecond);
  CHECK(controller.scale() == 1);
}

TEST_CASE("growth as it would be anyway is not held against a program", "[engine][part]") {
  pages::CostController controller(0.01);
  controller.note(50 * kMs, 50 * kMs, kSecond);
  CHECK(controller.scale() == 1);
  controller.note(5 * kMs, 50 * kMs, kSecond);  // nor is what it had cheaper saved
  CHECK(controller.scale() == 1);
}

TEST_CASE("neither thrift nor waste is remembered for ever", "[engine][part]") {
  pages::CostController controller(0.01);
  controller.note(0, 0, kSecond);
  controller.note(0, 0, 1'000 * kSecond);
  CHECK(controller.scale() == 1);  // pages never become smaller
  controller.note(20 * kMs, 0, 1'000 * kSecond);
  CHECK(controller.scale() == 1);  // 20 ms were saved up, whatever the time
  for (int i = 0; i < 100; ++i) controller.note(100 * kMs, 0, 1'000 * kSecond);
  CHECK(controller.scale() == 8);
  controller.note(0, 0, 1'006 * kSecond);
  CHECK(controller.scale() == 1);
}

TEST_CASE("fewer calls come first where much is overdrawn, until it is earned", "[engine][part]") {
  pages::CostController controller(0.01);
  controller.note(39 * kMs, 0, kSecond);
  CHECK_FALSE(controller.muchOverdrawn());
  controller.note(11 * kMs, 0, 2 * kSecond);
  CHECK(controller.muchOverdrawn());
  controller.note(0, 0, 3 * kSecond);
  CHECK_FALSE(controller.muchOverdrawn());
}

// One stream has many small tensors, then another a large one of all their memory, over and over.
// It `varies`: no round is like the one before.
struct PassingRig : SimRig {
  static constexpr std::size_t kEach = 16 * kMiB;
  explicit PassingRig(std::size_t tensors, const std::string& conf = "")
      : SimRig("backing:pages,background_thread:false,thread_cache:off" + conf, simOf(256 * kGiB)),
        count(tensors) {}
  /// The calls that so many rounds take.
  std::uint64_t pass(int rounds) {
    const std::uint64_t before = mappingCalls(sim());
    for (int i = 0; i < rounds; ++i) {
      std::vector<void*> tensors(count);
      std::uint64_t all = 0;
      for (void*& tensor : tensors) {
        const std::uint64_t bytes = kEach - (varies ? random() % (kEach / 2) : 0);
        tensor = allocator.allocate(bytes, first);
        all += bytes;
      }
      for (void* tensor : tensors) allocator.free(tensor);
      allocator.free(allocator.allocate(all, second));
    }
    return mappingCalls(sim()) - before;
  }
  const std::size_t count;
  const Stream first = stream(), second = stream();
  bool varies = true;
  std::mt19937_64 random{1};
};

TEST_CASE("streams that pass memory on come to need few calls for it", "[engine][pages]") {
  PassingRig rig(40);
  const std::uint64_t at_first = rig.pass(10);
  rig.pass(50);
  CHECK(rig.pass(10) < at_first / 3);
  CHECK(reservedOf(rig.allocator) <= std::int64_t(rig.count * PassingRig::kEach + 64 * kMiB));
  checkAtRest(rig);
}

TEST_CASE("streams that pass memory on for ever come to have memory of their own",
          "[engine][pages]") {
  PassingRig rig(40);
  rig.varies = false;
  const std::uint64_t bytes = rig.count * PassingRig::kEach;
  rig.pass(120);
  CHECK(rig.pass(10) == 0);
  CHECK(reservedOf(rig.allocator) <= std::int64_t(2 * bytes + 64 * kMiB));
  checkAtRest(rig);
}

TEST_CASE("who recycles at any cost keeps small pages", "[engine][pages]") {
  PassingRig rig(200, ",recycle:eager");
  rig.pass(20);
  CHECK(pagesOf(rig.allocator).returned == 0);
  checkAtRest(rig);
}

TEST_CASE("a clock that goes back earns nothing", "[engine][part]") {
  pages::CostController controller(0.01);
  controller.note(20 * kMs, 0, 5 * kSecond);
  controller.note(0, 0, kSecond);
  CHECK(controller.scale() == 2);
}

}  // namespace cistern::test
