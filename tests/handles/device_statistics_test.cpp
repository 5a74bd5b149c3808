// Memory, handles and workspaces of one device, read together.
#include <map>

#include "cistern/handles/library.hpp"
#include "tests/engine/engine_support.hpp"
#include "tests/handles/fake_library.hpp"

namespace cistern::test {
namespace {

struct CountedTag {
  static constexpr const char* kName = "counted";
};
struct Counted : FakeLibrary<CountedTag> {
  static std::size_t workspaceBytes(int) { return 2 * kMiB; }
  static void setWorkspace(Handle, void*, std::size_t) {}
};

std::map<std::string, std::int64_t> numbersOf(CachingAllocator& allocator) {
  std::map<std::string, std::int64_t> numbers;
  for (const StatRow& row : deviceStatistics(allocator)) {
    CHECK(numbers.emplace(row.name, row.value).second);
  }
  return numbers;
}

}  // namespace

TEST_CASE("one list has a device's memory, its handles and its workspaces", "[statistics]") {
  sim::SimConfig config = simOf(kGiB);
  config.ordinal = 5;
  SimRig rig("", config);
  setWorkspaceAllocator(5, &rig.allocator);
  const auto before = numbersOf(rig.allocator);
  CHECK(before.at("workspaces.count") == 0);
  CHECK(before.count("handles.counted.created") == 0);
  const auto use = [] {
    const DeviceGuard device(5);
    (void)handles::currentHandle<Counted>();
  };
  onThread(use);
  auto now = numbersOf(rig.allocator);
  CHECK(now.at("handles.counted.created") == 1);
  CHECK(now.at("handles.counted.live") == 0);
  CHECK(now.at("handles.counted.free") == 1);
  CHECK(now.at("handles.counted.destroyed") == 0);
  CHECK(now.at("handles.counted.leaked") == 0);
  use();
  now = numbersOf(rig.allocator);
  CHECK(now.at("handles.counted.created") == 1);
  CHECK(now.at("handles.counted.live") == 1);
  CHECK(now.at("handles.counted.free") == 0);
  CHECK(now.at("workspaces.count") == 1);
  CHECK(now.at("workspaces.bytes") == 2 * std::int64_t(kMiB));
  CHECK(now.at("allocated_bytes.all.current") == 2 * std::int64_t(kMiB));
  setWorkspaceAllocator(5, nullptr);
}

TEST_CASE("what is counted for another device is not in the list", "[statistics]") {
  sim::SimConfig config = simOf(kGiB);
  config.ordinal = 6;
  SimRig rig("", config);
  const DeviceGuard device(4);
  (void)handles::currentHandle<Counted>();
  CHECK(numbersOf(rig.allocator).count("handles.counted.created") == 0);
}

TEST_CASE("pools of one library are added up", "[statistics]") {
  using Pool = FakePool<Counted>;
  sim::SimConfig config = simOf(kGiB);
  config.ordinal = 7;
  SimRig rig("", config);
  Pool first("twice"), second("twice");
  const auto one = first.newPoolWindow();
  (void)one->reserve(7);
  (void)second.newPoolWindow()->reserve(7);
  const auto numbers = numbersOf(rig.allocator);
  CHECK(numbers.at("handles.twice.created") == 2);
  CHECK(numbers.at("handles.twice.live") == 1);
  CHECK(numbers.at("handles.twice.free") == 1);
}

}  // namespace cistern::test
