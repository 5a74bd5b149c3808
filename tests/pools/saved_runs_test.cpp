// Which bytes are copied, in which pieces.
#include "allocator/sleep/saved_runs.hpp"

#include <algorithm>
#include <random>

#include "allocator/base/bytes.hpp"
#include "tests/support/catch.hpp"

namespace cistern {

static bool operator==(const AddressRange& a, const AddressRange& b) {
  return a.from == b.from && a.to == b.to;
}
static bool operator==(const SavedRun& a, const SavedRun& b) {
  return a.from == b.from && a.bytes == b.bytes && a.at == b.at;
}

namespace test {
namespace {

using Ranges = std::vector<AddressRange>;

}  // namespace

TEST_CASE("ranges that touch or overlap are merged", "[sleep][part]") {
  CHECK(merged({{0, 2}, {2, 5}, {6, 9}, {7, 8}, {9, 10}}) == Ranges{{0, 5}, {6, 10}});
  CHECK(merged({}).empty());
}

TEST_CASE("what two lists of ranges have in common is theirs alone", "[sleep][part]") {
  CHECK(intersection({{0, 10}, {20, 30}}, {{5, 25}, {26, 27}}) ==
        Ranges{{5, 10}, {20, 25}, {26, 27}});
  CHECK(intersection({{0, 10}}, {{10, 20}}).empty());
}

TEST_CASE("small gaps are joined, the smallest first, up to a twentieth", "[sleep][part]") {
  constexpr std::uint64_t k = 100 * kKiB;
  // 5 k of blocks admit a quarter of k of gaps.
  const Ranges live{{0, k}, {k + 512, 2 * k}, {2 * k + k / 5, 3 * k}, {4 * k, 6 * k + 512}};
  const Ranges all{{0, 100 * k}};
  CHECK(joinedOverGaps(live, all) == Ranges{{0, 3 * k}, {4 * k, 6 * k + 512}});
  // A gap without memory that goes is not joined.
  CHECK(joinedOverGaps(live, {{0, k + 256}, {k + 512, 100 * k}}) ==
        Ranges{{0, k}, {k + 512, 3 * k}, {4 * k, 6 * k + 512}});
}

TEST_CASE("a large gap is not joined, however much is live", "[sleep][part]") {
  const Ranges live{{0, kGiB}, {kGiB + 129 * kKiB, 2 * kGiB}};
  CHECK(joinedOverGaps(live, {{0, 4 * kGiB}}) == live);
  const Ranges near{{0, kGiB}, {kGiB + 128 * kKiB, 2 * kGiB}};
  CHECK(joinedOverGaps(near, {{0, 4 * kGiB}}).size() == 1);
}

TEST_CASE("runs that do not fit into a chunk go on in the next", "[sleep][part]") {
  std::vector<std::byte> host(100);
  const PinnedChunks chunks{{host.data(), 10, false}, {host.data() + 50, 20, false}};
  CHECK(placedIn(chunks, {{100, 104}, {200, 212}, {300, 305}}) ==
        std::vector<SavedRun>{{100, 4, host.data()},
                              {200, 6, host.data() + 4},
                              {206, 6, host.data() + 50},
                              {300, 5, host.data() + 56}});
}

TEST_CASE("parts of runs lie in the host's memory where the runs do", "[sleep][part]") {
  std::vector<std::byte> host(100);
  const std::vector<SavedRun> runs{{100, 10, host.data()}, {200, 10, host.data() + 10}};
  CHECK(partsIn(runs, {{0, 104}, {106, 203}, {209, 400}}) ==
        std::vector<SavedRun>{{100, 4, host.data()},
                              {106, 4, host.data() + 6},
                              {200, 3, host.data() + 10},
                              {209, 1, host.data() + 19}});
}

TEST_CASE("whatever is live is copied, at most a twentieth beside it", "[sleep][part]") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Ranges live, within;
    Address at = 0;
    for (int i = 0; i < 40; ++i) {
      const Address from = at + (random() % 4 == 0 ? 0 : random() % 200) * 512;
      const Address to = from + (1 + random() % 400) * 512;
      live.push_back({from, to});
      within.push_back({random() % 3 == 0 ? from : at, to});
      at = to;
    }
    const Ranges blocks = merged(live), memory = merged(within);
    const Ranges copied = joinedOverGaps(blocks, memory);
    CHECK(intersection(copied, blocks) == blocks);
    CHECK(intersection(copied, memory) == copied);
    CHECK(bytesOfRanges(copied) * 20 <= bytesOfRanges(blocks) * 21);
    CHECK(copied.size() <= blocks.size());
  }
}

}  // namespace test
}  // namespace cistern
