// The contract of DeviceThreadHandlePool and its windows, on a counted library.
#include <memory>
#include <optional>
#include <set>

#include "tests/handles/fake_library.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

struct PoolTag {};
using PooledLibrary = FakeLibrary<PoolTag>;
using Pool = FakePool<PooledLibrary>;
using Window = std::unique_ptr<Pool::PoolWindow>;

struct Counts {
  int created = PooledLibrary::created, destroyed = PooledLibrary::destroyed;
  int createdSince() const { return PooledLibrary::created - created; }
  int destroyedSince() const { return PooledLibrary::destroyed - destroyed; }
};

HandleCounts counted(std::uint64_t created, std::uint64_t live, std::uint64_t free) {
  return {created, live, free, 0, 0};
}

}  // namespace

TEST_CASE("a window gives the same handle each time, and one for each device", "[pool]") {
  Pool pool("fake");
  const Window window = pool.newPoolWindow();
  FakeHandle* const first = window->reserve(0);
  CHECK(window->reserve(0) == first);
  FakeHandle* const other = window->reserve(5);
  CHECK(other != first);
  CHECK(other->device == 5);
  CHECK(window->reserve(0) == first);
  CHECK(pool.counts(0) == counted(1, 1, 0));
  CHECK(pool.counts(5) == counted(1, 1, 0));
}

TEST_CASE("two windows never have the same handle", "[pool]") {
  Pool pool("fake");
  const Window a = pool.newPoolWindow(), b = pool.newPoolWindow();
  CHECK(a->reserve(0) != b->reserve(0));
  CHECK(pool.counts(0) == counted(2, 2, 0));
}

TEST_CASE("what a window had is free when it goes, last in first out", "[pool]") {
  Pool pool("fake");
  Window a = pool.newPoolWindow(), b = pool.newPoolWindow();
  FakeHandle* const of_a = a->reserve(0);
  FakeHandle* const of_b = b->reserve(0);
  a.reset();
  b.reset();
  CHECK(pool.counts(0) == counted(2, 0, 2));
  const Window c = pool.newPoolWindow(), d = pool.newPoolWindow();
  CHECK(c->reserve(0) == of_b);
  CHECK(d->reserve(0) == of_a);
  CHECK(pool.counts(0) == counted(2, 2, 0));
}

TEST_CASE("a handle of one device never serves another", "[pool]") {
  Pool pool("fake");
  pool.newPoolWindow()->reserve(0);
  const Window window = pool.newPoolWindow();
  CHECK(window->reserve(1)->device == 1);
  CHECK(pool.counts(0) == counted(1, 0, 1));
}

TEST_CASE("a thousand short threads create as many handles as there were at once", "[pool]") {
  const Counts before;
  Pool pool("fake");
  constexpr int kAtOnce = 8;
  for (int round = 0; round < 1000 / kAtOnce; ++round) {
    Gate gate(kAtOnce);
    onThreads(kAtOnce, [&] {
      const Window window = pool.newPoolWindow();
      window->reserve(0)->use();
      gate.pass();  // all windows are alive now
    });
  }
  CHECK(before.createdSince() == kAtOnce);
  CHECK(pool.counts(0) == counted(kAtOnce, 0, kAtOnce));
}

TEST_CASE("a creation that fails leaves nothing behind, and the next try works", "[pool]") {
  Pool pool("fake");
  const Window window = pool.newPoolWindow();
  PooledLibrary::failures_to_come = 2;
  CHECK_THROWS_WITH(window->reserve(0), "fake library: create failed");
  CHECK_THROWS_AS(window->reserve(0), Error);
  CHECK(pool.counts(0) == HandleCounts{});
  CHECK(window->reserve(0) != nullptr);
  CHECK(pool.counts(0) == counted(1, 1, 0));
}

TEST_CASE("a free handle serves while none can be created", "[pool]") {
  Pool pool("fake");
  FakeHandle* const made = pool.newPoolWindow()->reserve(0);
  PooledLibrary::failures_to_come = 1;
  CHECK(pool.newPoolWindow()->reserve(0) == made);
  CHECK(PooledLibrary::failures_to_come.exchange(0) == 1);
}

TEST_CASE("an ordinal out of range is refused and changes nothing", "[pool]") {
  const Counts before;
  Pool pool("fake");
  const Window window = pool.newPoolWindow();
  CHECK_THROWS_AS(window->reserve(-1), InvalidArgument);
  CHECK_THROWS_AS(window->reserve(kMaxDevices), InvalidArgument);
  CHECK(before.createdSince() == 0);
}

TEST_CASE("a pool destroys its free handles when it goes", "[pool]") {
  const Counts before;
  {
    Pool pool("fake");
    Window a = pool.newPoolWindow(), b = pool.newPoolWindow();
    a->reserve(0);
    a->reserve(1);
    b->reserve(0);
  }
  CHECK(before.destroyedSince() == 3);
}

TEST_CASE("a window that outlives its pool leaks what it has, and may not reserve", "[pool]") {
  const Counts before;
  auto pool = std::make_optional<Pool>("fake");
  Window window = pool->newPoolWindow();
  FakeHandle* const held = window->reserve(0);
  pool.reset();
  CHECK_THROWS_AS(window->reserve(0), HandlePoolGone);
  CHECK_THROWS_WITH(window->reserve(3),
                    "fake: the pool of its handles is gone: no handle for device 3");
  held->use();  // still the thread's
  window.reset();
  CHECK(before.destroyedSince() == 0);
  CHECK(before.createdSince() == 1);
}

TEST_CASE("free handles can be destroyed while the pool lives", "[pool]") {
  const Counts before;
  Pool pool("fake");
  const Window window = pool.newPoolWindow();
  FakeHandle* const held = window->reserve(0);
  pool.newPoolWindow()->reserve(0);
  pool.destroyFree();
  CHECK(before.destroyedSince() == 1);
  CHECK(pool.counts(0) == HandleCounts{2, 1, 0, 1, 0});
  CHECK(window->reserve(0) == held);
}

TEST_CASE("the handles of a library that has no destroy stay when their pool goes", "[pool]") {
  using Immortal = DeviceThreadHandlePool<FakeHandle*, &PooledLibrary::create, nullptr>;
  FakeHandle* made = nullptr;
  {
    Immortal pool("fake");
    made = pool.newPoolWindow()->reserve(0);
    pool.destroyFree();
    CHECK(pool.counts(0) == counted(1, 0, 1));
  }
  made->use();
}

TEST_CASE("statistics list each pool by library and device, while it lives", "[pool]") {
  const auto mine = [] {
    std::vector<HandleStats> found;
    for (const HandleStats& one : handleStatistics()) {
      if (one.library == "listed") found.push_back(one);
    }
    return found;
  };
  {
    Pool pool("listed");
    CHECK(mine().empty());
    const Window window = pool.newPoolWindow();
    window->reserve(0);
    window->reserve(2);
    pool.newPoolWindow()->reserve(2);
    const std::vector<HandleStats> found = mine();
    REQUIRE(found.size() == 2);
    CHECK(found[0].device == 0);
    CHECK(found[0].handles == counted(1, 1, 0));
    CHECK(found[1].device == 2);
    CHECK(found[1].handles == counted(2, 1, 1));
  }
  CHECK(mine().empty());
}

TEST_CASE("64 threads share a pool without sharing a handle", "[pool]") {
  const Counts before;
  {
    Pool pool("fake");
    onThreads(64, [&](std::size_t t) {
      for (int round = 0; round < 20; ++round) {
        const Window window = pool.newPoolWindow();
        for (int i = 0; i < 10; ++i) window->reserve(int(t + std::size_t(i)) % 3)->use();
        if (t == 0) pool.destroyFree();
        if (t == 1) (void)handleStatistics();
      }
    });
    int free = 0;
    for (int device = 0; device < 3; ++device) {
      const HandleCounts counts = pool.counts(device);
      CHECK(counts.live == 0);
      CHECK(counts.leaked == 0);
      CHECK(counts.created == counts.free + counts.destroyed);
      CHECK(counts.free <= 64);
      free += int(counts.free);
    }
    CHECK(before.createdSince() - before.destroyedSince() == free);
  }
  CHECK(before.createdSince() == before.destroyedSince());
}

}  // namespace cistern::test
