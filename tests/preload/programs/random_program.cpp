// Programs at random, without races of their own.
#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "tests/preload/programs/on_the_driver.hpp"

namespace {

struct Block {
  CUdeviceptr memory;
  std::size_t bytes;
  CUstream stream;  ///< whose work uses it
  bool async;
};

/// A program without races of its own, as long as cudaFree keeps what is used before apart from
/// what is used after. On one stream at a time uses a block; another comes by an event.
class RandomProgram {
 public:
  RandomProgram(unsigned seed, bool captures) : random_(seed), captures_(captures) {
    const CUstream kinds[] = {nullptr, CU_STREAM_PER_THREAD};
    for (std::size_t i = 0, n = 1 + below(4); i < n; ++i)
      streams_.push_back(below(3) == 0 ? kinds[below(2)] : makeStream(unsigned(below(2))));
    unknown_ = driverFunction<decltype(cuFakeLaunch)>("cuFakeLaunch");
    EXPECT(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) step();
    for (const Block& block : blocks_) EXPECT(cuMemFree(block.memory) == CUDA_SUCCESS);
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  CUstream anyStream() { return streams_[below(streams_.size())]; }
  static bool isMade(CUstream stream) {
    return stream != nullptr && stream != CU_STREAM_PER_THREAD;
  }

  void step() {
    const std::size_t what = below(100);
    if (blocks_.empty() || what < 30) return allocate();
    if (what < 62) return use(blocks_[below(blocks_.size())]);
    if (what < 86) return release(below(blocks_.size()));
    if (what < 92) return handOver(blocks_[below(blocks_.size())], anyStream());
    if (what < 94) return renew(below(streams_.size()));
    if (what < 96) return (void)EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
    if (what < 98) return (void)EXPECT(cuStreamSynchronize(anyStream()) == CUDA_SUCCESS);
    if (captures_) capture();
  }
  void allocate() {
    Block block{0, std::size_t(512) << below(13), anyStream(), below(5) == 0};
    const CUresult result = block.async ? cuMemAllocAsync(&block.memory, block.bytes, block.stream)
                                        : cuMemAlloc(&block.memory, block.bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) return;  // the test may have left it little
    if (EXPECT(result == CUDA_SUCCESS)) blocks_.push_back(block);
  }
  void use(const Block& block) {
    const unsigned long long time = below(2) == 0 ? 1000 : 1'000'000;
    switch (below(5)) {
      case 0:
        EXPECT(cuMemsetD8Async(block.memory, 0, block.bytes, block.stream) == CUDA_SUCCESS);
        break;
      case 1:
        EXPECT(cuMemcpyDtoDAsync(block.memory, block.memory + block.bytes / 2, block.bytes / 2,
                                 block.stream) == CUDA_SUCCESS);
        break;
      case 2:
        EXPECT(unknown_(block.stream, "unknown", block.memory, block.bytes, 1, time) ==
               CUDA_SUCCESS);
        break;
      default:
        launch(block.stream, block.memory, block.bytes, time);
    }
  }
  void release(std::size_t which) {
    const Block block = blocks_[which];
    blocks_.erase(blocks_.begin() + std::ptrdiff_t(which));
    const bool in_order = block.async && below(2) == 0;
    EXPECT((in_order ? cuMemFreeAsync(block.memory, block.stream) : cuMemFree(block.memory)) ==
           CUDA_SUCCESS);
  }
  void handOver(Block& block, CUstream to) {
    EXPECT(cuEventRecord(event_, block.stream) == CUDA_SUCCESS);
    EXPECT(cuFakeWaitEvent(to, event_, 0) == CUDA_SUCCESS);
    block.stream = to;
  }
  // What the stream had goes on, and somebody else takes its blocks over.
  void renew(std::size_t which) {
    const CUstream gone = streams_[which];
    if (!isMade(gone) || std::count(streams_.begin(), streams_.end(), gone) != 1) return;
    streams_[which] = makeStream(unsigned(below(2)));
    for (Block& block : blocks_) {
      if (block.stream == gone) handOver(block, streams_[which]);
    }
    EXPECT(cuStreamDestroy(gone) == CUDA_SUCCESS);
  }
  // Captures a use, allocates and frees meanwhile, and launches the graph.
  void capture() {
    const CUstream stream = makeStream(CU_STREAM_NON_BLOCKING);
    const Block block{allocated(), kBytes, stream, false};
    launch(stream, block.memory);  // it has work when the capture begins
    beginCapture(stream);
    launch(stream, block.memory);
    for (int i = 0; i < 3; ++i) {
      const Block other{allocated(), kBytes, streams_[0], false};
      if (isMade(other.stream)) use(other);
      EXPECT(cuMemFree(other.memory) == CUDA_SUCCESS);
    }
    const CUgraph graph = endCapture(stream);
    CUgraphExec ready = nullptr;
    EXPECT(cuGraphInstantiateWithFlags(&ready, graph, 0) == CUDA_SUCCESS);
    EXPECT(cuGraphLaunch(ready, stream) == CUDA_SUCCESS);
    EXPECT(cuMemFree(block.memory) == CUDA_SUCCESS);
    EXPECT(cuStreamDestroy(stream) == CUDA_SUCCESS);
  }
  std::mt19937 random_;
  const bool captures_;
  std::vector<CUstream> streams_;
  std::vector<Block> blocks_;
  decltype(cuFakeLaunch)* unknown_ = nullptr;
  CUevent event_ = nullptr;
};

unsigned seed() { return unsigned(number("SEED")); }

}  // namespace

void randomStreams() {
  begin();
  RandomProgram(seed(), std::getenv("FAKE_CAPACITY") == nullptr).run(400);
  EXPECT(cuFakeRaces() == 0);
}

void randomThreads() {
  begin();
  CUcontext context = nullptr;
  EXPECT(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([=] {
      EXPECT(cuCtxSetCurrent(context) == CUDA_SUCCESS);
      RandomProgram(seed() * 3 + t, false).run(300);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT(cuFakeRaces() == 0);
}
