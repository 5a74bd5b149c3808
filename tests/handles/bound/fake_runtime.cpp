// A vendor's runtime that is fake.
#include <atomic>
#include <utility>

#include "cistern/error.hpp"
#include "tests/handles/bound/fake_vendor.hpp"

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

int Below::current() { return FakeRuntime::current; }
void Below::setCurrent(int device) { FakeRuntime::current = device; }
bool Below::relaxed() { return FakeRuntime::relaxed == 1; }
Stream Below::newStream() {
  static std::atomic<std::uintptr_t> last{0x70};
  return Stream{last += 16};
}
void Below::destroyStream(Stream) {}
bool Below::isAlive(Stream) { return true; }
void* Below::allocate(std::size_t) {
  static char memory = 0;
  return &memory;
}
void Below::free(void*) {}
bool Below::work(void*, std::size_t, std::uintptr_t) { return true; }

}  // namespace cistern::test
