// What a heap remembers of its last frees, page by page.
#include "allocator/base/bounds.hpp"
#include "allocator/engine/heap/frees.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/host_memory/host_memory.hpp"
#include "tests/support/skipped.hpp"

namespace cistern::test {
namespace {

/// Pieces are noted in granules of one of two segments.
struct RecentRig {
  RecentRig() {
    segments[0].base = 1 << 20;
    segments[1].base = 1 << 30;
  }
  void note(std::uint32_t from, std::uint32_t to, std::uint32_t epoch, int in = 0) {
    const Address base = segments[in].base;
    recent.note(segments[in], base + from * kGranule, base + to * kGranule, epoch);
  }
  /// Each as {segment, from, to, epoch}.
  std::vector<std::vector<std::uint32_t>> taken() {
    std::vector<std::vector<std::uint32_t>> all;
    recent.take([&](const RecentFrees::Piece& piece) {
      all.push_back({std::uint32_t(piece.in - segments), piece.from, piece.to, piece.epoch});
    });
    return all;
  }

  Segment segments[2];
  RecentFrees recent;
};

using RecentPieces = std::vector<std::vector<std::uint32_t>>;

}  // namespace

TEST_CASE("neighbours that were freed in one epoch are one piece, whichever came first",
          "[engine][part]") {
  RecentRig rig;
  rig.note(10, 20, 5);
  rig.note(20, 30, 5);
  rig.note(5, 10, 5);
  CHECK(rig.taken() == RecentPieces{{0, 5, 30, 5}});
  CHECK(rig.taken().empty());
}

TEST_CASE("pieces of other epochs, other segments or other places are told apart",
          "[engine][part]") {
  if (kTightBounds) return skipped("bounds are tight");  // fewer pieces are remembered
  RecentRig rig;
  rig.note(10, 20, 5);
  rig.note(20, 30, 6);
  rig.note(30, 40, 6, 1);
  rig.note(41, 50, 6, 1);
  rig.note(10, 20, 5);
  CHECK(
      rig.taken() ==
      RecentPieces{{0, 10, 20, 5}, {0, 20, 30, 6}, {1, 30, 40, 6}, {1, 41, 50, 6}, {0, 10, 20, 5}});
  CHECK(rig.recent.forgotten() == 0);
}

TEST_CASE("where there is no room for more, all up to now is forgotten", "[engine][part]") {
  RecentRig rig;
  for (std::uint32_t i = 0; i < RecentFrees::kMost; ++i) rig.note(2 * i, 2 * i + 1, 1 + i);
  CHECK(rig.recent.forgotten() == 0);
  const std::size_t most = rig.recent.hostBytes();
  rig.note(7, 8, 5'000);
  CHECK(rig.recent.forgotten() == 5'000);
  CHECK(rig.taken() == RecentPieces{{0, 7, 8, 5'000}});
  CHECK(rig.recent.hostBytes() == most);
}

TEST_CASE("an epoch that is to be forgotten takes all pieces with it", "[engine][part]") {
  RecentRig rig;
  rig.note(1, 2, 3);
  rig.recent.forget(4);
  CHECK(rig.recent.forgotten() == 4);
  CHECK(rig.taken().empty());
}

#if defined(CISTERN_COUNTS_HOST_MEMORY)

TEST_CASE("a free that there is no host memory to remember is forgotten", "[engine][part]") {
  // With tight ones pieces are forgotten before the host is short of memory.
  if (kTightBounds) return skipped("bounds are tight");
  RecentRig rig;
  {
    const AtHostAllocations none([] { throw std::bad_alloc(); });
    rig.note(1, 2, 9);
    CHECK(rig.recent.hostBytes() == 0);
    for (std::uint32_t i = 0; i < 20; ++i) rig.note(3 * i, 3 * i + 1, 2);
    CHECK(rig.recent.forgotten() == 9);  // never an earlier one again
  }
  for (std::uint32_t i = 0; i < 8; ++i) rig.note(3 * i, 3 * i + 1, 10);
  {
    const AtHostAllocations none([] { throw std::bad_alloc(); });
    rig.note(100, 101, 11);
  }
  CHECK(rig.recent.forgotten() == 11);
  CHECK(rig.taken().empty());
}

TEST_CASE("without host memory what is forgotten counts as freed in the latest epoch",
          "[engine][part]") {
  RecentRig rig;
  rig.note(0, 1, 9);
  {
    const AtHostAllocations none([] { throw std::bad_alloc(); });
    for (std::uint32_t i = 1; i < 64; ++i) rig.note(2 * i, 2 * i + 1, 3);
  }
  CHECK(rig.recent.forgotten() == 9);
}

#endif

TEST_CASE("what is forgotten counts as freed in the latest epoch, whichever piece comes last",
          "[engine][part]") {
  RecentRig rig;
  for (std::uint32_t i = 0; i < RecentFrees::kMost; ++i) rig.note(2 * i, 2 * i + 1, 9);
  rig.note(5'000, 5'001, 3);  // memory that comes back was used last long ago
  CHECK(rig.recent.forgotten() == 9);
  rig.recent.forget(4);
  CHECK(rig.recent.forgotten() == 9);
  rig.recent.restamp(1);  // stamps mean other epochs from now on
  CHECK(rig.recent.forgotten() == 1);
}

}  // namespace cistern::test
