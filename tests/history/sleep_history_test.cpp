// A history of pools that sleep: their memory goes, and comes back; their blocks live on.
#include <random>
#include <utility>
#include <vector>

#include "cistern/pool.hpp"
#include "tests/history/history_support.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

using recording::EventKind;
using recording::Recording;

HistorySettings keeping(std::uint64_t most_events = 100'000) {
  HistorySettings settings;
  settings.most_events = most_events;
  return settings;
}

/// A pool with two blocks in use, and free memory between them.
struct Sleeper {
  explicit Sleeper(std::uint64_t capacity = 256 * kMiB, const std::string& more = "")
      : device(configOf(capacity)),
        allocator(device, Options::parse("page_size:2M,background_thread:false" + more)),
        pools(allocator),
        s(device.createStream().orThrow()),
        pool(pools) {
    first = pool.allocate(5 * kMiB, s);
    void* const between = pool.allocate(8 * kMiB, s);
    second = pool.allocate(3 * kMiB, s);
    allocator.free(between);
  }
  ~Sleeper() {
    for (void* block : {first, second})
      if (block != nullptr) allocator.free(block);
  }
  static sim::SimConfig configOf(std::uint64_t capacity) {
    sim::SimConfig config;
    config.capacity = capacity;
    return config;
  }

  sim::SimDevice device;
  CachingAllocator allocator;
  Pools pools;
  Stream s;
  MemPool pool;
  void *first = nullptr, *second = nullptr;
};

std::uint64_t bytesOf(const std::map<Address, std::uint64_t>& pieces) {
  std::uint64_t bytes = 0;
  for (const auto& [at, size] : pieces) bytes += size;
  return bytes;
}

void checkSame(Sleeper& of) { checkAgreement(of.allocator); }

}  // namespace

TEST_CASE("memory goes at sleep and comes at wake, and blocks live on", "[history][sleep]") {
  Sleeper of;
  of.allocator.recordHistory(keeping());
  const Picture before = pictureOf(dumped(of.allocator));
  const SleepReport slept = of.pools.sleep({of.pool.id()});
  const Picture asleep = pictureOf(dumped(of.allocator));
  CHECK(slept.released > 0);
  CHECK(bytesOf(asleep.reserved) + slept.released == bytesOf(before.reserved));
  CHECK(asleep.living == before.living);
  checkSame(of);
  const WakeReport woken = of.pools.wake({of.pool.id()});
  const Picture awake = pictureOf(dumped(of.allocator));
  CHECK(bytesOf(awake.reserved) == bytesOf(asleep.reserved) + woken.mapped);
  CHECK(awake.living == before.living);
  checkSame(of);
}

TEST_CASE("a history may begin while a pool sleeps", "[history][sleep]") {
  Sleeper of;
  (void)of.pools.sleep({of.pool.id()});
  checkSame(of);  // without a history: what there is now
  CHECK(pictureOf(dumped(of.allocator)).reserved.empty());
  of.allocator.recordHistory(keeping());
  checkSame(of);
  of.allocator.free(std::exchange(of.second, nullptr));
  checkSame(of);
  (void)of.pools.wake({of.pool.id()});
  checkSame(of);
}

TEST_CASE("a ring that has forgotten a sleep says what there was after it", "[history][sleep]") {
  Sleeper of;
  of.allocator.recordHistory(keeping(4));
  (void)of.pools.sleep({of.pool.id()});
  for (int i = 0; i < 8; ++i) of.allocator.free(of.allocator.allocate(1000, of.s));
  checkSame(of);
  (void)of.pools.wake({of.pool.id()});
  for (int i = 0; i < 8; ++i) of.allocator.free(of.allocator.allocate(1000, of.s));
  checkSame(of);
}

TEST_CASE("a file has the sleep and the wake", "[history][sleep]") {
  const TemporaryFile file("sleep.trace");
  Sleeper of;
  HistorySettings settings;
  settings.file = file.path().string();
  of.allocator.recordHistory(settings);
  const SleepReport slept = of.pools.sleep({of.pool.id()});
  const WakeReport woken = of.pools.wake({of.pool.id()});
  of.allocator.stopHistory();
  const Recording read = readOne(file.path());
  std::uint64_t came = 0, went = 0;
  for (std::size_t i = read.first_recorded; i < read.events.size(); ++i) {
    if (read.events[i].kind == EventKind::kMap) came += read.events[i].value;
    if (read.events[i].kind == EventKind::kUnmap) went += read.events[i].value;
  }
  CHECK(went == slept.released);
  CHECK(came == woken.mapped);
  CHECK(pictureOf(read) == pictureOf(of.allocator.snapshot()));
}

TEST_CASE("a history amid sleeps agrees with the snapshot, whatever it has forgotten",
          "[history][sleep]") {
  for (const std::uint64_t most_events : {5u, 100u, 100'000u}) {
    INFO(most_events << " events");
    Sleeper of;
    MemPool other(of.pools);
    std::mt19937 random(7);
    std::vector<void*> blocks;
    of.allocator.recordHistory(keeping(most_events));
    for (int i = 0; i < 600; ++i) {
      MemPool& pool = random() % 2 ? of.pool : other;
      const bool asleep = of.pools.isAsleep(pool.id());
      const auto what = random() % 10;
      if (what == 0) {
        (void)of.pools.sleep({pool.id()});
      } else if (what == 1) {
        (void)of.pools.wake({pool.id()});
      } else if (what < 6 && !asleep) {
        blocks.push_back(pool.allocate(1000 + random() % (6 * kMiB), of.s));
      } else if (what < 9 && !blocks.empty()) {
        std::swap(blocks[random() % blocks.size()], blocks.back());
        of.allocator.free(blocks.back());
        blocks.pop_back();
      } else {
        of.allocator.emptyCache();
      }
      if (i % 20 == 0) checkSame(of);
      if (i % 97 == 0) of.allocator.recordHistory(keeping(most_events));
    }
    for (void* block : blocks) of.allocator.free(block);
    checkSame(of);
  }
}

// In a child: a process writes a few dumps only.
TEST_CASE("a dump of a failure while a pool sleeps has its blocks, without memory",
          "[history][sleep]") {
  for (const char* const history : {"", ",history:1000"}) {
    INFO(history);
    const Folder folder;
    const int code = exitCodeOfChild([&] {
      Sleeper of(64 * kMiB, history + (",oom_dump:" + folder.text()));
      (void)of.pools.sleep({of.pool.id()});
      try {
        (void)of.allocator.allocate(65 * kMiB, of.s);
      } catch (const OutOfMemory&) {
        return 0;
      }
      return 1;
    });
    CHECK(code == 0);
    REQUIRE(folder.files().size() == 1);
    const Picture picture = pictureOf(readOne(folder.files()[0]));
    CHECK(picture.living.size() == 2);
    CHECK(picture.reserved.empty());
  }
}

}  // namespace cistern::test
