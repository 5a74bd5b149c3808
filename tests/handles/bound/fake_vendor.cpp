#include "tests/handles/bound/fake_vendor.hpp"

#include <memory>
#include <mutex>
#include <utility>

#include "cistern/error.hpp"

namespace cistern::test {
namespace {

int ask() noexcept { return FakeRuntime::devices == 0 ? -1 : FakeRuntime::current; }
std::uintptr_t enter(int ordinal) {
  if (ordinal >= FakeRuntime::devices) throw Error("fake runtime: no such device");
  return std::uintptr_t(std::exchange(FakeRuntime::current, ordinal));
}
void leave(std::uintptr_t before) noexcept { FakeRuntime::current = int(before); }
int relax() noexcept { return std::exchange(FakeRuntime::relaxed, 1); }
void restore(int before) noexcept { FakeRuntime::relaxed = before; }
int computeMajor(int) noexcept { return 9; }

constexpr handles::VendorRuntime kTable{
    {ask, enter, leave}, "no usable fake GPU", relax, restore, computeMajor};
[[maybe_unused]] const bool registered = (addDeviceSwitch(kTable.devices), true);

}  // namespace

const handles::VendorRuntime& FakeRuntime::table() { return kTable; }

// Kept for good, as libraries' handles that are never destroyed are.
FakeState* FakeLibraries::newState() {
  static std::mutex& mutex = *new std::mutex;
  static auto& all = *new std::vector<std::unique_ptr<FakeState>>;
  const std::lock_guard lock(mutex);
  if (failures_to_come > 0) {
    --failures_to_come;
    return nullptr;
  }
  all.push_back(std::make_unique<FakeState>());
  all.back()->created_on = FakeRuntime::current;
  all.back()->created_relaxed = FakeRuntime::relaxed == 1;
  return all.back().get();
}

}  // namespace cistern::test
