// Device memory that frees itself.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cistern/memory.hpp"
#include "cistern/sim.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sim_work.hpp"

namespace cistern::test {
namespace {

struct BufferRig {
  std::unique_ptr<sim::SimulatedDevice> device = sim::makeDevice();
  CachingAllocator allocator{*device};
  Stream stream = device->createStream().orThrow();

  using Words = DeviceBuffer<std::uint32_t>;
  Words words(std::size_t count) { return Words(count, stream, allocator); }
  std::int64_t held() const { return allocator.memoryStats()[Stat::kAllocation].current; }
  std::int64_t requested() const { return allocator.memoryStats()[Stat::kRequestedBytes].current; }
  std::uint64_t copies() const { return device->callCounts()[std::size_t(Call::kCopy)]; }
  void write(Words& to, const std::vector<std::uint32_t>& values) {
    const auto effect = [&, at = toAddress(to.data())](sim::MemoryView& memory) {
      memory.write(at, values.data(), values.size() * 4);
    };
    const sim::Access access{toAddress(to.data()), values.size() * 4, sim::AccessKind::kWrite};
    device->launch(stream, {"write", {access}, 1, effect}).orThrow();
    device->synchronizeDevice().orThrow();
  }
  std::vector<std::uint32_t> read(Words& from, std::size_t count) {
    std::vector<std::uint32_t> values(count);
    const auto effect = [&, at = toAddress(from.data())](sim::MemoryView& memory) {
      memory.read(at, values.data(), count * 4);
    };
    const sim::Access access{toAddress(from.data()), count * 4, sim::AccessKind::kRead};
    device->launch(stream, {"read", {access}, 1, effect}).orThrow();
    device->synchronizeDevice().orThrow();
    return values;
  }
};

}  // namespace

TEST_CASE("a buffer frees its memory when it goes", "[cpp]") {
  BufferRig rig;
  {
    BufferRig::Words words = rig.words(1'000);
    CHECK(words.size() == 1'000);
    CHECK(words.bytes() == 4'000);
    CHECK(words.stream() == rig.stream);
    CHECK(rig.held() == 1);
    CHECK(rig.requested() == 4'000);
  }
  CHECK(rig.held() == 0);
}

TEST_CASE("an empty buffer has nothing", "[cpp]") {
  BufferRig rig;
  DeviceBuffer<double> none, zero(0, rig.stream, rig.allocator);
  for (auto* buffer : {&none, &zero}) {
    CHECK(buffer->empty());
    CHECK(buffer->data() == nullptr);
    buffer->record(rig.stream);
    buffer->reset();
    buffer->resize(0);
  }
  zero.resize(10);
  CHECK(zero.size() == 10);
  CHECK(rig.held() == 1);
}

TEST_CASE("a buffer moves, and what it moved onto is freed", "[cpp]") {
  BufferRig rig;
  BufferRig::Words a = rig.words(10), b = rig.words(20);
  const auto* const memory = a.data();
  b = std::move(a);
  CHECK(b.data() == memory);
  CHECK(b.size() == 10);
  CHECK(a.empty());
  CHECK(rig.held() == 1);
  BufferRig::Words c = std::move(b);
  BufferRig::Words& same = c;
  c = std::move(same);  // onto itself
  CHECK(c.data() == memory);
  CHECK(rig.held() == 1);
}

TEST_CASE("what is released is the caller's", "[cpp]") {
  BufferRig rig;
  std::uint32_t* mine = nullptr;
  {
    BufferRig::Words words = rig.words(10);
    mine = words.release();
    CHECK(words.empty());
  }
  CHECK(rig.held() == 1);
  rig.allocator.free(mine);
  CHECK(rig.held() == 0);
}

TEST_CASE("a buffer grows with what is in it, and copies only where it must", "[cpp]") {
  BufferRig rig;
  BufferRig::Words words = rig.words(128);  // 512 bytes: what a block is made of
  std::vector<std::uint32_t> values(128);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::uint32_t(i * i);
  rig.write(words, values);

  words.resize(100);
  const auto* const before = words.data();
  words.resize(128);
  CHECK(words.data() == before);  // in place, both
  CHECK(rig.copies() == 0);

  words.resize(1 << 20);
  CHECK(words.size() == 1 << 20);
  CHECK(rig.copies() == 1);
  CHECK(rig.read(words, 128) == values);
  CHECK(rig.held() == 1);

  words.resizeWithoutCopy(1 << 22);
  CHECK(rig.copies() == 1);
  CHECK(words.size() == 1 << 22);
  words.resize(0);
  CHECK(rig.held() == 0);
  CHECK(rig.device->races().empty());
}

TEST_CASE("a buffer that cannot grow is as it was", "[cpp]") {
  BufferRig rig;
  BufferRig::Words words = rig.words(1'000);
  const auto* const before = words.data();
  CHECK_THROWS_AS(words.resize(std::size_t{1} << 60), OutOfMemory);
  CHECK_THROWS_AS(words.resize(~std::size_t{0}), std::bad_alloc);
  rig.device->faults().failAll(Call::kCopy);
  CHECK_THROWS_AS(words.resize(1 << 20), DeviceFailure);
  CHECK(words.data() == before);
  CHECK(words.size() == 1'000);
  CHECK(rig.held() == 1);
}

TEST_CASE("a buffer that another stream uses is told so", "[cpp]") {
  BufferRig rig;
  const Stream other = rig.device->createStream().orThrow();
  Address address = 0;
  {
    BufferRig::Words words = rig.words(1'000);
    address = toAddress(words.data());
    const sim::Access access{address, 4'000, sim::AccessKind::kWrite};
    rig.device->launch(other, {"long", {access}, 1'000'000, nullptr}).orThrow();
    words.record(other);
  }
  BufferRig::Words next = rig.words(1'000);
  CHECK(toAddress(next.data()) != address);
}

TEST_CASE("a unique pointer frees by the shared allocators", "[cpp]") {
  const auto held = [] { return allocator().memoryStats()[Stat::kAllocation].current; };
  {
    const UniqueDevicePtr<double> one = makeUnique<double>();
    const UniqueDevicePtr<float[]> many = makeUnique<float[]>(1'000, Stream{});
    CHECK(one != nullptr);
    CHECK(many != nullptr);
    CHECK(held() == 2);
    CHECK_THROWS_AS(makeUnique<double[]>(~std::size_t{0}), std::bad_alloc);
  }
  CHECK(held() == 0);
}

}  // namespace cistern::test
