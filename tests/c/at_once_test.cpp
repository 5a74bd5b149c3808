// Handles that one thread destroys while others destroy or use them.
#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "allocator/engine/cache/cache_table.hpp"
#include "tests/c/c_support.hpp"
#include "tests/support/threads.hpp"

using namespace cistern::test;

namespace {

/// Runs them all at the same moment, as far as that can be had.
std::vector<cistern_status_t> atOnce(const std::vector<std::function<cistern_status_t()>>& calls) {
  std::vector<cistern_status_t> said(calls.size());
  std::atomic<std::size_t> waiting{0};
  onThreads(calls.size(), [&](std::size_t i) {
    ++waiting;
    while (waiting.load() < calls.size()) std::this_thread::yield();
    said[i] = calls[i]();
  });
  return said;
}

/// One has done it; the others were told that it is none (any more).
void checkOneDidIt(std::vector<cistern_status_t> said) {
  std::sort(said.begin(), said.end());
  CHECK(said.front() == CISTERN_OK);
  CHECK(std::vector(said.begin() + 1, said.end()) ==
        std::vector(said.size() - 1, CISTERN_INVALID_HANDLE));
}

constexpr int kRounds = 60;

/// Of sizes up to 4 MiB, until it is none any more.
cistern_status_t pairsUntilGone(cistern_allocator_t a, std::atomic<int>& done) {
  for (unsigned shift = 0;; shift = (shift + 1) % 14) {
    void* block = nullptr;
    const cistern_status_t status = cistern_allocate(a, std::size_t{512} << shift, nullptr, &block);
    ++done;
    if (status != CISTERN_OK) return status;
    const cistern_status_t freed = cistern_free(a, block);
    if (freed != CISTERN_OK) return freed;
  }
}

}  // namespace

TEST_CASE("of threads that destroy one handle at once, one does", "[c]") {
  for (int round = 0; round < kRounds; ++round) {
    const cistern_allocator_t a = makeSim();
    const cistern_pool_t pool = makePool(a);
    void* stream = nullptr;
    cistern_capture_t capture = nullptr;
    REQUIRE(cistern_stream_create(a, &stream) == CISTERN_OK);
    REQUIRE(cistern_stream_begin_capture(a, stream) == CISTERN_OK);
    REQUIRE(cistern_capture_begin(a, stream, nullptr, &capture) == CISTERN_OK);
    const auto release = [&] { return cistern_capture_release(capture); };
    checkOneDidIt(atOnce({release, release, release}));
    REQUIRE(cistern_stream_end_capture(a, stream) == CISTERN_OK);
    const auto let_go = [&] { return cistern_pool_destroy(pool); };
    checkOneDidIt(atOnce({let_go, let_go, let_go}));
    const auto destroy = [&] { return cistern_allocator_destroy(a); };
    checkOneDidIt(atOnce({destroy, destroy, destroy}));
  }
}

TEST_CASE("a call on an allocator that is being destroyed succeeds, or there is no such handle",
          "[c]") {
  for (int round = 0; round < kRounds; ++round) {
    const cistern_allocator_t a = makeSim();
    std::atomic<int> done{0};
    const auto use = [&] { return pairsUntilGone(a, done); };
    const auto read = [&] {
      cistern_statistics_t statistics{};
      statistics.size = sizeof(statistics);
      for (;;) {
        const cistern_status_t status = cistern_statistics(a, &statistics);
        if (status != CISTERN_OK) return status;
      }
    };
    const auto destroy = [&] {
      while (done.load() < 50) std::this_thread::yield();
      return cistern_allocator_destroy(a);
    };
    checkOneDidIt(atOnce({use, use, read, destroy}));
  }
}

TEST_CASE("who destroys an allocator waits for a hit that another thread is in", "[c]") {
  const cistern_allocator_t a = makeSim();
  for (int i = 0; i < 3; ++i) REQUIRE(pair(a) == CISTERN_OK);  // from the second on by a cache
  cistern::ThreadCache& cache = cistern::CacheTable::last();
  cistern::BiasedLock& biased_lock = cache.biasedLock();
  std::atomic<bool> gone{false};
  cistern_status_t said = CISTERN_INVALID_HANDLE;
  REQUIRE(biased_lock.tryLock());
  std::thread other([&] {
    said = cistern_allocator_destroy(a);
    gone = true;
  });
  // The handle goes first; then there is as much time as a hit ever takes. (A call that takes the
  // biased lock too would give it up.)
  std::uint64_t limit = 0;
  while (cistern_limit(a, &limit) == CISTERN_OK) std::this_thread::yield();
  for (int looks = 0; looks < 2'000; ++looks) std::this_thread::yield();
  CHECK_FALSE(gone);
  CHECK(cache.allowsHits());  // what a hit reads is there
  biased_lock.unlock();
  other.join();
  CHECK(said == CISTERN_OK);
  CHECK(pair(a) == CISTERN_INVALID_HANDLE);
}

TEST_CASE("an allocator with a pool that another thread makes is not destroyed", "[c]") {
  int kept = 0, gone = 0;
  for (int round = 0; round < kRounds; ++round) {
    const cistern_allocator_t a = makeSim();
    cistern_pool_t pool = nullptr;
    const auto said = atOnce({[&] { return cistern_pool_create(a, nullptr, &pool); },
                              [&] { return cistern_allocator_destroy(a); }});
    if (said[0] == CISTERN_OK) {
      ++kept;
      CHECK(said[1] == CISTERN_INVALID_STATE);
      CHECK(cistern_pool_destroy(pool) == CISTERN_OK);
      CHECK(cistern_allocator_destroy(a) == CISTERN_OK);
    } else {
      ++gone;
      CHECK(said == std::vector{CISTERN_INVALID_HANDLE, CISTERN_OK});
    }
  }
  CHECK(kept + gone == kRounds);
}

TEST_CASE("a call on a pool that is being destroyed succeeds, or there is no such handle", "[c]") {
  const cistern_allocator_t a = makeSim();
  for (int round = 0; round < kRounds; ++round) {
    const cistern_pool_t pool = makePool(a);
    std::atomic<int> done{0};
    const auto use = [&] {
      for (;;) {
        void* block = nullptr;
        const cistern_status_t status = cistern_pool_allocate(pool, 512, nullptr, &block);
        ++done;
        if (status != CISTERN_OK) return status;
        if (cistern_free(a, block) != CISTERN_OK) return CISTERN_INTERNAL;
      }
    };
    const auto destroy = [&] {
      while (done.load() < 20) std::this_thread::yield();
      return cistern_pool_destroy(pool);
    };
    checkOneDidIt(atOnce({use, use, destroy}));
  }
  CHECK(cistern_allocator_destroy(a) == CISTERN_OK);
}

TEST_CASE("a hook may detach itself while another thread detaches it", "[c]") {
  struct Detached {
    cistern_memory_hook_t hook = nullptr;
    std::atomic<bool> inside{false}, other_began{false};
    cistern_status_t said = CISTERN_INTERNAL;
  } shared;
  const cistern_allocator_t a = makeSim();
  const auto slow = [](void* context, const cistern_memory_notice_t*) {
    auto& of = *static_cast<Detached*>(context);
    if (of.hook == nullptr || of.inside.exchange(true)) return;
    while (!of.other_began) std::this_thread::yield();
    for (int looks = 0; looks < 2'000; ++looks) std::this_thread::yield();  // until it waits
    of.said = cistern_memory_hook_detach(of.hook);
  };
  REQUIRE(cistern_memory_hook_attach(a, slow, &shared, &shared.hook) == CISTERN_OK);
  cistern_status_t said = CISTERN_INTERNAL;
  std::thread other([&] {
    while (!shared.inside) std::this_thread::yield();
    shared.other_began = true;
    said = cistern_memory_hook_detach(shared.hook);
  });
  void* block = nullptr;
  const cistern_status_t served = cistern_allocate(a, 8 << 20, nullptr, &block);
  other.join();
  CHECK(served == CISTERN_OK);
  CHECK((said == CISTERN_OK) != (shared.said == CISTERN_OK));
  CHECK((said == CISTERN_INVALID_HANDLE) != (shared.said == CISTERN_INVALID_HANDLE));
  CHECK(cistern_free(a, block) == CISTERN_OK);
  CHECK(cistern_allocator_destroy(a) == CISTERN_OK);
}

TEST_CASE("each thread has its own last error", "[c]") {
  CHECK(cistern_allocator_destroy(nullptr) == CISTERN_INVALID_HANDLE);
  CHECK(lastErrorHas("the handle of an allocator is null"));
  std::thread([] {
    CHECK(std::string(cistern_last_error()).empty());
    CHECK(cistern_pool_destroy(nullptr) == CISTERN_INVALID_HANDLE);
    CHECK(lastErrorHas("of a pool is null"));
  }).join();
  CHECK(lastErrorHas("the handle of an allocator is null"));
}
