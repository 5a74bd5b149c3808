// A request is refused only where giving back all that lies free would not have served it.
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "tests/engine/engine_support.hpp"
#include "tests/support/meanwhile.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::test {
namespace {

/// A program of its own: requests of small and odd sizes on several streams, each used for a while,
/// of which at most `live` are held at a time.
class Program {
 public:
  Program(SimRig& rig, unsigned seed, std::size_t live, std::uint64_t most)
      : rig_(rig), live_(live), most_(most), random_(seed) {
    for (int i = 0; i < 5; ++i) streams_.push_back(rig.stream());
  }
  ~Program() {
    while (!held_.empty()) freeAny();
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Requests that were refused, and served once the cache was empty.
  int wrongRefusals(int steps) {
    int wrong = 0;
    for (int i = 0; i < steps; ++i) {
      const Stream stream = streams_[below(streams_.size())];
      const std::uint64_t bytes = below(2) == 0 ? 1 + below(kMiB) : kMiB + 1 + below(most_);
      void* block = tried(bytes, stream);
      if (block == nullptr) {
        rig_.sim().synchronizeDevice().orThrow();
        rig_.allocator.emptyCache();
        block = tried(bytes, stream);
        wrong += block != nullptr ? 1 : 0;
      }
      if (block != nullptr) use(block, stream);
      while (held_.size() > (block == nullptr ? live_ / 2 : live_)) freeAny();
    }
    return wrong;
  }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  void* tried(std::uint64_t bytes, Stream stream) {
    try {
      return rig_.allocator.allocate(bytes, stream);
    } catch (const OutOfMemory&) {
      return nullptr;
    }
  }
  void use(void* block, Stream stream) {
    rig_.touch(stream, block);
    const Stream other = streams_[below(streams_.size())];
    if (other != stream && below(3) == 0) rig_.allocator.recordStream(block, other);
    held_.push_back(block);
    if (below(4) == 0) rig_.sim().advanceHost(1'000'000);
  }
  void freeAny() {
    std::swap(held_[below(held_.size())], held_.back());
    rig_.allocator.free(held_.back());
    held_.pop_back();
  }

  SimRig& rig_;
  const std::size_t live_;
  const std::uint64_t most_;
  std::mt19937_64 random_;
  std::vector<Stream> streams_;
  std::vector<void*> held_;
};

/// Returns how many requests were refused of threads that hold one block each, of 4 MiB at most,
/// which are all used on a third stream. Meanwhile another one does `beside`, over and over.
template <class Beside>
int refusalsOfThreads(const char* conf, unsigned seed, unsigned count, Beside beside) {
  SimRig rig(conf, simOf((count * 8 + 16) * kMiB, 1'000'000));
  const Streams streams(rig.allocator, 3);
  std::atomic<int> refused{0};
  std::atomic<unsigned> working{count};
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(seed * count + t);
      for (int i = 0; i < (kSlowBuild ? 60 : 200); ++i) {
        const Stream stream = streams[random() % 2];
        try {
          void* const block = rig.allocator.allocate(kMiB << random() % 3, stream);
          if (i % 3 == 0) rig.touch(stream, block);
          rig.allocator.recordStream(block, streams[2]);
          rig.allocator.free(block);
        } catch (const OutOfMemory&) {
          ++refused;
        }
      }
      --working;
    });
  }
  while (working > 0) beside(rig, streams);
  for (std::jthread& thread : threads) thread.join();
  return refused;
}

void restAwhile(SimRig&, const Streams&) { std::this_thread::yield(); }
void emptyTheCache(SimRig& rig, const Streams&) { rig.allocator.emptyCache(); }
/// Hits, which ask now and then whether what waits is complete.
void useSmallBlocks(SimRig& rig, const Streams& streams) {
  void* const block = rig.allocator.allocate(512, streams[0]);
  rig.allocator.recordStream(block, streams[2]);
  rig.allocator.free(block);
}

}  // namespace

TEST_CASE("no thread is refused memory that others have in hand for a moment",
          "[engine][threads]") {
  for (const char* conf : {"backing:pages", "backing:pages,recycle:off", "backing:segments"}) {
    CAPTURE(conf);
    for (unsigned seed = 0; seed < 10; ++seed) {
      CHECK(refusalsOfThreads(conf, seed, 6, restAwhile) == 0);
      CHECK(refusalsOfThreads(conf, seed, 4, emptyTheCache) == 0);
      CHECK(refusalsOfThreads(conf, seed, 2, useSmallBlocks) == 0);
    }
  }
}

TEST_CASE("no thread is refused what another gives back to the device", "[engine][threads]") {
  constexpr std::size_t kBytes = 12 * kMiB;
  SimWork work(simOf(kBytes));
  InterposedDevice device(work.device());
  CachingAllocator allocator(device, Options::parse("backing:segments"));
  const Streams streams(allocator, 2);
  allocator.free(allocator.allocate(kBytes, streams[0]));

  bool served = false;
  Meanwhile request(device, Call::kFree, [&] {
    try {
      allocator.free(allocator.allocate(kBytes, streams[1]));
      served = true;
    } catch (const OutOfMemory&) {
    }
  });
  allocator.emptyCache();
  CHECK(request.wait());
  CHECK(served);
  allocator.audit();
}

// The device makes a segment for one thread, and the limit has no room for another. Once it is
// there, most of it lies free.
TEST_CASE("no thread is refused what another gets from the device", "[engine][threads]") {
  SimWork work(simOf(64 * kMiB));
  InterposedDevice device(work.device());
  CachingAllocator allocator(device, Options::parse("backing:segments"));
  allocator.setLimit(20 * kMiB);
  const Streams streams(allocator, 1);

  std::atomic<bool> served{false}, over{false};
  std::jthread other;
  device.before = [&](Call call) {
    if (call != Call::kMalloc || other.joinable()) return;
    other = std::jthread([&] {
      try {
        allocator.free(allocator.allocate(4 * kMiB, streams[0]));
        served = true;
      } catch (const OutOfMemory&) {
      }
      over = true;
    });
    for (int i = 0; i < 200 && !over; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  allocator.free(allocator.allocate(4 * kMiB, streams[0]));
  other.join();
  CHECK(served);
  allocator.audit();
}

TEST_CASE("what an empty cache would make room for is served", "[engine]") {
  const struct {
    const char* conf;
    std::uint64_t capacity;
    std::size_t live;
  } programs[] = {{"backing:pages,page_size:64MiB", 64 * kMiB, 0},
                  {"backing:pages,page_size:16MiB", 64 * kMiB, 0},
                  {"backing:pages,page_size:64MiB", 128 * kMiB, 0},
                  {"backing:pages,recycle:off", 256 * kMiB, 8},
                  {"backing:pages,cross_stream_reuse:false", 64 * kMiB, 8},
                  {"backing:pages", 64 * kMiB, 8},
                  {"backing:segments", 64 * kMiB, 8}};
  for (const auto& program : programs) {
    CAPTURE(program.conf, program.capacity);
    for (unsigned seed = 0; seed < 20; ++seed) {
      CAPTURE(seed);
      SimRig rig(std::string(program.conf) + ",background_thread:false", simOf(program.capacity));
      Program run(rig, seed, program.live, program.capacity / 2 - kMiB);
      CHECK(run.wrongRefusals(150) == 0);
    }
  }
}

TEST_CASE("below a limit that was lowered there is room once what lies free is given back",
          "[engine]") {
  for (const char* conf : {"recycle:off", "cross_stream_reuse:false", "page_size:2MiB"}) {
    CAPTURE(conf);
    SimRig rig(std::string(conf) + ",background_thread:false");
    const Stream first = rig.stream(), second = rig.stream();
    rig.allocator.free(rig.allocator.allocate(64 * kMiB, first));
    rig.allocator.setLimit(2 * kMiB);
    CHECK_NOTHROW(rig.allocator.free(rig.allocator.allocate(512, second)));
  }
}

TEST_CASE("what is refused was never counted", "[engine][pages]") {
  SimRig rig("backing:pages,background_thread:false,limit:64MiB", simOf(kGiB, 1'000'000));
  const Stream captured = rig.stream(), other = rig.stream();
  void* held = rig.allocator.allocate(20 * kMiB, captured);
  void* freed = rig.allocator.allocate(40 * kMiB, captured);
  rig.touch(captured, freed);
  rig.sim().beginCapture(captured, CaptureMode::kRelaxed).orThrow();  // cannot be waited for
  rig.allocator.free(freed);
  rig.allocator.resetPeakStats();
  const StatValue before = rig.allocator.memoryStats()[Stat::kAllocatedBytes];
  CHECK_THROWS_AS(rig.allocator.allocate(30 * kMiB, other), OutOfMemory);
  const StatValue after = rig.allocator.memoryStats()[Stat::kAllocatedBytes];
  CHECK(after.peak == before.peak);
  CHECK(after.allocated == before.allocated);
  rig.sim().endCapture(captured).orThrow();
  rig.allocator.free(held);
}

TEST_CASE("what a higher limit would have to be counts what is held beyond it", "[engine]") {
  SimRig rig("background_thread:false");
  void* held = rig.allocator.allocate(60 * kMiB);
  rig.allocator.setLimit(2 * kMiB);
  CHECK_THROWS_WITH(rig.allocator.allocate(10 * kMiB),
                    Catch::Matchers::ContainsSubstring("A limit higher by 68.00 MiB"));
  rig.allocator.setLimit(70 * kMiB);
  CHECK_NOTHROW(rig.allocator.free(rig.allocator.allocate(10 * kMiB)));
  rig.allocator.free(held);
}

}  // namespace cistern::test
