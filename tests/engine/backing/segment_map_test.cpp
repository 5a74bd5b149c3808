// The map from addresses to segments.
#include "allocator/engine/ground/segment_map.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <new>
#include <string_view>
#include <thread>

#include <sys/resource.h>

#include "allocator/base/sanitizers.hpp"
#include "allocator/engine/heap/heap.hpp"
#include "tests/engine/engine_support.hpp"
#include "tests/support/host_memory/host_memory.hpp"

namespace cistern::test {

TEST_CASE("two segments that meet within a granule are told apart", "[engine][part]") {
  constexpr std::uint64_t kBase = 0x7f00'0000'0000;
  SegmentMap map;
  HeapSegment low, high, far;
  low.device_base = kBase + 512;
  low.bytes = 2 * kMiB;
  high.device_base = low.device_base + low.bytes;
  high.bytes = 6 * kMiB;
  far.device_base = (std::uint64_t{1} << 57) - 2 * kMiB;
  far.bytes = 2 * kMiB;
  for (HeapSegment* segment : {&high, &low, &far}) map.insert(*segment);
  for (HeapSegment* segment : {&high, &low, &far}) {
    const Address base = segment->device_base;
    for (std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{511}, segment->bytes / 2,
                                 segment->bytes - 512, segment->bytes - 1}) {
      CHECK(map.find(base + offset) == segment);
    }
  }
  CHECK(map.find(kBase) == nullptr);
  CHECK(map.find(0) == nullptr);
  CHECK(map.find(~Address{0}) == nullptr);
  map.erase(low);
  CHECK(map.find(low.device_base) == nullptr);
  CHECK(map.find(high.device_base) == &high);
  map.insert(low);
  map.erase(high);
  CHECK(map.find(low.device_base + low.bytes - 1) == &low);
  CHECK(map.find(high.device_base + 4 * kMiB) == nullptr);
}

TEST_CASE("a range that is one segment's for good is found wherever it was extended",
          "[engine][part]") {
  constexpr Address kWhole = Address{16} << 30;
  constexpr Address kFrom = 0x7f00'0000'0000 - 6 * kMiB;  // its ends share 16 GiB with others
  constexpr AddressRange kOwn{kFrom, kFrom + 2 * kWhole + 10 * kMiB};
  SegmentMap map;
  HeapSegment range, below, above;
  range.device_base = kFrom;
  below.bytes = above.bytes = 2 * kMiB;
  below.device_base = kFrom - below.bytes;
  above.device_base = kOwn.to;
  map.insert(below);
  map.insert(above);
  const std::size_t leaves = map.hostBytes();
  for (const Address to :
       {kFrom + 2 * kMiB, kFrom + 64 * kMiB, kFrom + kWhole + 8 * kMiB, kOwn.to}) {
    map.extend(range, kOwn, kFrom + range.bytes, to);
    range.bytes = to - kFrom;
    for (Address at = kFrom; at < to; at += 2 * kMiB) {
      if (map.find(at) != &range || map.find(at + 2 * kMiB - 1) != &range) FAIL(at - kFrom);
    }
    CHECK(map.find(below.device_base) == &below);
    CHECK(map.find(above.device_base) == &above);
  }
  CHECK(map.hostBytes() == leaves);  // what it has whole costs nothing
  map.erase(above);
  CHECK(map.find(kOwn.to) == nullptr);
  CHECK(map.find(kOwn.to - 1) == &range);
}

#if defined(CISTERN_COUNTS_HOST_MEMORY)

TEST_CASE("a segment that there is no host memory to enter is not found, and can be entered later",
          "[engine][part]") {
  for (int allowed = 0; allowed < 8; ++allowed) {
    SegmentMap map;
    HeapSegment segment;
    segment.device_base = 0x7f00'0000'0000 + 30 * kMiB;  // over two leaves
    segment.bytes = 8 * kMiB;
    try {
      int left = allowed;
      const AtHostAllocations few([&] {
        if (left-- == 0) throw std::bad_alloc();
      });
      map.insert(segment);
    } catch (const std::bad_alloc&) {
      for (Address at = 0; at < segment.bytes; at += 2 * kMiB)
        CHECK(map.find(segment.device_base + at) == nullptr);
    }
    if (map.find(segment.device_base) == nullptr) map.insert(segment);
    for (Address at = 0; at < segment.bytes; at += 2 * kMiB)
      CHECK(map.find(segment.device_base + at) == &segment);
  }
}

#endif

TEST_CASE("segments are found while others come and go beside them", "[engine][part][threads]") {
  SegmentMap map;
  HeapSegment stays, comes;
  stays.device_base = 0x7f00'0000'0000 + 512;
  stays.bytes = comes.bytes = 5 * kMiB;
  comes.device_base = stays.deviceEnd();  // in a cell of both
  map.insert(stays);
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    while (!over) {
      for (Address at = 0; at < stays.bytes; at += kMiB / 2)
        wrong += map.find(stays.device_base + at) != &stays;
      const HeapSegment* const found = map.find(comes.device_base + 4 * kMiB);
      wrong += found != nullptr && found != &comes;
    }
  });
  for (int i = 0; i < 2'000; ++i) {
    map.insert(comes);
    map.erase(comes);
  }
  over = true;
  reader.join();
  CHECK(wrong == 0);
}

#if !defined(CISTERN_ADDRESS_SANITIZER) && !defined(CISTERN_THREAD_SANITIZER)
/// The process has no more addresses than it has now, while this lives.
class NoMoreAddresses {
 public:
  NoMoreAddresses() {
    REQUIRE(getrlimit(RLIMIT_AS, &before_) == 0);
    rlimit few = before_;
    few.rlim_cur = 1 * kMiB;
    REQUIRE(setrlimit(RLIMIT_AS, &few) == 0);
  }
  ~NoMoreAddresses() { (void)setrlimit(RLIMIT_AS, &before_); }
  NoMoreAddresses(const NoMoreAddresses&) = delete;
  NoMoreAddresses& operator=(const NoMoreAddresses&) = delete;

 private:
  rlimit before_{};
};

TEST_CASE("an allocator that gets no addresses says how many it wants, and why", "[engine][part]") {
  std::array<char, 256> said{};
  {
    const NoMoreAddresses limited;
    try {
      const SegmentMap another;
    } catch (const std::bad_alloc& refused) {
      std::strncpy(said.data(), refused.what(), said.size() - 1);
    }
  }
  CHECK(std::string_view(said.data()).find("64 MiB of addresses") != std::string_view::npos);
  CHECK(std::string_view(said.data()).find("ulimit -v") != std::string_view::npos);
}
#endif

}  // namespace cistern::test
