// Segments of a pool whose memory is not the device's, and host memory that is not there.
#include <new>
#include <optional>
#include <stdexcept>
#include <string>

#include "tests/engine/backing/segments_support.hpp"
#include "tests/support/host_memory/host_memory.hpp"

namespace cistern::test {
namespace {

/// Memory that is an address and nothing else.
struct MadeUpSource : SegmentSource {
  Result<Address> allocate(std::size_t bytes, Stream) override {
    if (throws) throw std::runtime_error("no");
    if (refuses) return DeviceError{Call::kMalloc, ErrorKind::kOutOfMemory, 0, "none", {}};
    out += bytes;
    if (instead) return *instead;
    return next += 64 * kMiB;
  }
  Status free(Address, std::size_t bytes) override {
    if (throws) throw std::runtime_error("no");
    if (refuses) return DeviceError{Call::kFree, ErrorKind::kOther, 0, "none", {}};
    out -= bytes;
    return {};
  }

  bool throws = false, refuses = false;
  std::optional<Address> instead;  ///< returned without looking
  std::uint64_t out = 0;
  Address next = Address{1} << 44;
};

struct SourceRig : SegmentsRig {
  SourceRig() {
    of_source.open({0, 1}, {source, false}, rules, MemoryKind::kSegments);
    home = &heaps.findOrMake(of_source, stream());
  }
  ~SourceRig() {
    source->throws = source->refuses = false;
    (void)segments.release({home}, UINT64_MAX);
    CHECK(source->out == 0);
    of_source.drain();
    CHECK(heaps.park(*home));
    CHECK(calls(Call::kMalloc) == 0);
  }

  Request requestOfSource(std::uint64_t bytes) {
    return rules.request(bytes, home->stream(), &of_source);
  }
  std::uint64_t reserved() {
    const MutexLock lock(home->mutex());
    return home->reservedBytes();
  }

  std::shared_ptr<MadeUpSource> source = std::make_shared<MadeUpSource>();
  Pool of_source{false, rules, MemoryKind::kSegments};
  Heap* home = nullptr;
};

}  // namespace

TEST_CASE("a pool's source is asked instead of the device, and has its memory back",
          "[engine][part]") {
  SourceRig rig;
  Block* const block = rig.segments.grow(*rig.home, rig.requestOfSource(5 * kMiB));
  REQUIRE(block);
  CHECK(rig.source->out == 20 * kMiB);
  CHECK(rig.map.find(deviceAddress(*block)) == &segmentOf(*block));
  Parts::release(*block);
  CHECK(rig.segments.release({rig.home}, UINT64_MAX) == 20 * kMiB);
  CHECK(rig.source->out == 0);
}

TEST_CASE("what a source throws leaves the verb, and nothing has changed", "[engine][part]") {
  SourceRig rig;
  rig.source->throws = true;
  CHECK_THROWS_AS(rig.segments.grow(*rig.home, rig.requestOfSource(kMiB)), std::runtime_error);
  rig.source->throws = false;
  rig.source->refuses = true;
  CHECK(rig.segments.grow(*rig.home, rig.requestOfSource(kMiB)) == nullptr);
  CHECK((rig.reserved() == 0 && rig.limit.reserved() == 0));
}

TEST_CASE("what no source may return is refused by name, and goes back", "[engine][part]") {
  SourceRig rig;
  Block* const there = rig.segments.grow(*rig.home, rig.requestOfSource(5 * kMiB));
  const Address live = deviceAddress(*there);
  const std::uint64_t out = rig.source->out, reserved = rig.reserved();
  const std::uint64_t taken = rig.segments.taken(), returned = rig.segments.returned();
  struct Case {
    Address address;
    const char* why;
    bool goes_back;
  };
  const Case cases[] = {{0, "is null", false},
                        {live + 64 * kMiB + 1, "is not a multiple of 512", true},
                        {~Address{0} - 511, "reaches beyond 2^57", true},
                        {(Address{1} << 57) - 2 * kMiB, "reaches beyond 2^57", true},
                        {live, "of this allocator already", false},
                        {live + 512, "of this allocator already", false},
                        {live + 18 * kMiB, "of this allocator already", false},
                        {live - 512, "of this allocator already", false},
                        {live - 19 * kMiB, "of this allocator already", false}};
  for (const Case& one : cases) {
    rig.source->instead = one.address;
    CAPTURE(one.address);
    CHECK_THROWS_WITH(rig.segments.grow(*rig.home, rig.requestOfSource(5 * kMiB)),
                      Catch::Matchers::StartsWith("the SegmentSource of pool {0, 1} returned 0x") &&
                          Catch::Matchers::ContainsSubstring(one.why));
    CHECK(rig.source->out == (one.goes_back ? out : out + 20 * kMiB));
    rig.source->out = out;
    CHECK(rig.reserved() == reserved);
    CHECK(rig.limit.reserved() == reserved);
    CHECK(rig.segments.taken() == taken);
    CHECK(rig.segments.returned() == returned);
    CHECK(rig.map.find(live) == &segmentOf(*there));
    Parts::audit(*rig.home);
  }
  rig.source->instead = live + 20 * kMiB;  // right behind, and right before
  Block* const behind = rig.segments.grow(*rig.home, rig.requestOfSource(5 * kMiB));
  rig.source->instead = live - 20 * kMiB;
  Block* const before = rig.segments.grow(*rig.home, rig.requestOfSource(5 * kMiB));
  for (Block* block : {there, behind, before}) Parts::release(*block);
}

TEST_CASE("a source that will not have its memory back, or throws, is asked again",
          "[engine][part]") {
  SourceRig rig;
  Parts::release(*rig.segments.grow(*rig.home, rig.requestOfSource(kMiB)));
  for (bool MadeUpSource::*trouble : {&MadeUpSource::throws, &MadeUpSource::refuses}) {
    (*rig.source).*trouble = true;
    CHECK(rig.segments.release({rig.home}, UINT64_MAX) == 0);
    CHECK(rig.reserved() == 2 * kMiB);
    Parts::audit(*rig.home);
    (*rig.source).*trouble = false;
  }
  CHECK(rig.segments.release({rig.home}, UINT64_MAX) == 2 * kMiB);
}

#if defined(CISTERN_COUNTS_HOST_MEMORY)

TEST_CASE("a heap that grows on a host without memory has what the source has given, or nothing",
          "[engine][part]") {
  int failed = 0;
  for (int allowed = 0; allowed < 20; ++allowed) {
    SourceRig rig;
    const Request request = rig.requestOfSource(5 * kMiB);
    Block* block = nullptr;
    try {
      int left = allowed;
      const AtHostAllocations few([&] {
        if (left-- == 0) throw std::bad_alloc();
      });
      block = rig.segments.grow(*rig.home, request);
    } catch (const std::bad_alloc&) {
      ++failed;
    }
    CAPTURE(allowed);
    CHECK(rig.source->out == rig.reserved());
    CHECK((rig.map.find(rig.source->next) != nullptr) == (rig.reserved() != 0));
    CHECK(rig.limit.reserved() == rig.reserved());
    Parts::audit(*rig.home);
    if (block) Parts::release(*block);
  }
  CHECK(failed > 2);
  CHECK(failed < 20);
}

TEST_CASE("memory that can be neither used nor given back waits with its heap", "[engine][part]") {
  for (int allowed = 0; allowed < 20; ++allowed) {
    SourceRig rig;
    const Request request = rig.requestOfSource(5 * kMiB);
    Block* block = nullptr;
    try {
      int left = allowed;
      const AtHostAllocations few([&] {
        if (left-- > 0) return;
        rig.source->refuses = rig.source->out > 0;
        throw std::bad_alloc();
      });
      block = rig.segments.grow(*rig.home, request);
    } catch (const std::bad_alloc&) {
    }
    CAPTURE(allowed);
    CHECK(rig.limit.reserved() == rig.source->out);
    if (rig.source->out != 0) {
      const MutexLock lock(rig.home->mutex());
      CHECK_FALSE(rig.home->holdsNothing());  // it has something to offer
    }
    rig.source->refuses = false;
    if (block) Parts::release(*block);
    (void)rig.segments.release({rig.home}, UINT64_MAX);
    CHECK(rig.source->out == 0);
  }
}

#endif

}  // namespace cistern::test
