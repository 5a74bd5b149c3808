// Programs at random, without races of their own.
#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "tests/preload/programs/order_program.hpp"

namespace {

struct Block {
  Memory memory;
  std::size_t bytes;
  gpu::Stream stream;  ///< whose work uses it
  bool async;
};

/// A program without races of its own, as long as cudaFree keeps what is used before apart from
/// what is used after. On one stream at a time uses a block; another comes by an event.
class RandomProgram {
 public:
  RandomProgram(unsigned seed, bool captures) : random_(seed), captures_(captures) {
    const gpu::Stream kinds[] = {nullptr, kOwn};
    for (std::size_t i = 0, n = 1 + below(4); i < n; ++i)
      streams_.push_back(below(3) == 0 ? kinds[below(2)] : makeStream(unsigned(below(2))));
    EXPECT(gpu::createEvent(&event_) == 0);
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) step();
    for (const Block& block : blocks_) EXPECT(gpu::free(block.memory) == 0);
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  gpu::Stream anyStream() { return streams_[below(streams_.size())]; }
  static bool isMade(gpu::Stream stream) { return stream != nullptr && stream != kOwn; }

  void step() {
    const std::size_t what = below(100);
    if (blocks_.empty() || what < 30) return allocate();
    if (what < 62) return use(blocks_[below(blocks_.size())]);
    if (what < 86) return release(below(blocks_.size()));
    if (what < 92) return handOver(blocks_[below(blocks_.size())], anyStream());
    if (what < 94) return renew(below(streams_.size()));
    if (what < 96) return (void)EXPECT(gpu::synchronize() == 0);
    if (what < 98) return (void)EXPECT(gpu::synchronizeStream(anyStream()) == 0);
    if (captures_) capture();
  }
  void allocate() {
    Block block{nullptr, std::size_t(512) << below(13), anyStream(), below(5) == 0};
    const int result = block.async ? gpu::mallocAsync(&block.memory, block.bytes, block.stream)
                                   : gpu::malloc(&block.memory, block.bytes);
    if (result == kOutOfMemory) return;  // the test may have left it little
    if (EXPECT(result == 0)) blocks_.push_back(block);
  }
  void use(const Block& block) {
    const unsigned long long time = below(2) == 0 ? 1000 : 1'000'000;
    switch (below(5)) {
      case 0:
        EXPECT(gpu::set(block.stream, block.memory, block.bytes) == 0);
        break;
      case 1:
        EXPECT(gpu::copy(block.stream, block.memory, block.memory + block.bytes / 2,
                         block.bytes / 2) == 0);
        break;
      case 2:
        EXPECT(gpu::launchUnknown(block.stream, block.memory, block.bytes, time) == 0);
        break;
      default:
        launch(block.stream, block.memory, block.bytes, time);
    }
  }
  void release(std::size_t which) {
    const Block block = blocks_[which];
    blocks_.erase(blocks_.begin() + std::ptrdiff_t(which));
    const bool in_order = block.async && below(2) == 0;
    EXPECT((in_order ? gpu::freeAsync(block.memory, block.stream) : gpu::free(block.memory)) == 0);
  }
  void handOver(Block& block, gpu::Stream to) {
    EXPECT(gpu::recordEvent(event_, block.stream) == 0);
    EXPECT(gpu::waitEvent(to, event_) == 0);
    block.stream = to;
  }
  // What the stream had goes on, and somebody else takes its blocks over.
  void renew(std::size_t which) {
    const gpu::Stream gone = streams_[which];
    if (!isMade(gone) || std::count(streams_.begin(), streams_.end(), gone) != 1) return;
    streams_[which] = makeStream(unsigned(below(2)));
    for (Block& block : blocks_) {
      if (block.stream == gone) handOver(block, streams_[which]);
    }
    EXPECT(gpu::destroyStream(gone) == 0);
  }
  // Captures a use, allocates and frees meanwhile, and launches the graph.
  void capture() {
    const gpu::Stream stream = makeStream(kNonBlocking);
    const Block block{allocated(), kBytes, stream, false};
    launch(stream, block.memory);  // it has work when the capture begins
    beginCapture(stream);
    launch(stream, block.memory);
    for (int i = 0; i < 3; ++i) {
      const Block other{allocated(), kBytes, streams_[0], false};
      if (isMade(other.stream)) use(other);
      EXPECT(gpu::free(other.memory) == 0);
    }
    EXPECT(gpu::launchGraph(endCapture(stream), stream) == 0);
    EXPECT(gpu::free(block.memory) == 0);
    EXPECT(gpu::destroyStream(stream) == 0);
  }
  std::mt19937 random_;
  const bool captures_;
  std::vector<gpu::Stream> streams_;
  std::vector<Block> blocks_;
  gpu::Event event_ = nullptr;
};

unsigned seed() { return unsigned(number("SEED")); }

}  // namespace

void randomStreams() {
  gpu::begin();
  RandomProgram(seed(), std::getenv("FAKE_CAPACITY") == nullptr).run(400);
  EXPECT(gpu::races() == 0);
}

void randomThreads() {
  gpu::begin();
  const gpu::Thread first = gpu::thisThread();
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([=] {
      gpu::takeOver(first);
      RandomProgram(seed() * 3 + t, false).run(300);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT(gpu::races() == 0);
}
