// A program on the driver, linked to it: what is freed while it is in use, and used anew by other
// streams. The fake driver's race detector says whether the order that cudaFree promises was kept.
#include <algorithm>
#include <initializer_list>
#include <random>
#include <thread>
#include <vector>

#include <dlfcn.h>

#include "tests/preload/fake_driver/fake_driver.hpp"
#include "tests/preload/programs/expect.hpp"

extern "C" CUresult cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned,
                                        unsigned, unsigned, unsigned, CUstream, void**, void**);

namespace {

constexpr std::size_t kBytes = 1 << 20;
constexpr unsigned long long kLong = 1'000'000;

CUdeviceptr allocated(std::size_t bytes = kBytes) {
  CUdeviceptr memory = 0;
  EXPECT(cuMemAlloc(&memory, bytes) == CUDA_SUCCESS);
  return memory;
}
CUstream makeStream(unsigned flags) {
  CUstream made = nullptr;
  EXPECT(cuStreamCreate(&made, flags) == CUDA_SUCCESS);
  return made;
}
void launch(CUstream stream, CUdeviceptr memory, std::size_t bytes = kBytes,
            unsigned long long nanoseconds = kLong) {
  int writes = 1;
  void* parameters[] = {&memory, &bytes, &writes, &nanoseconds};
  EXPECT(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr) == CUDA_SUCCESS);
}

void begin() {
  CUcontext context = nullptr;
  EXPECT(cuInit(0) == CUDA_SUCCESS);
  EXPECT(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  EXPECT(cuCtxSetCurrent(context) == CUDA_SUCCESS);
}

// ---- Captures
// ------------------------------------------------------------------------------------

// The thread allows itself what would be an error in a capture.
CUstream beginCapture(CUstream stream) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  EXPECT(cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
  EXPECT(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  return stream;
}
CUgraph endCapture(CUstream stream) {
  CUgraph graph = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  EXPECT(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
  EXPECT(cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
  return graph;
}

// ---- What an order costs ------------------------------------------------------------------------

/// Calls that Cistern has made of the driver, for order, since it was made.
class Calls {
 public:
  unsigned long long records() const { return cuFakeCalls("cuEventRecord") - records_; }
  unsigned long long waits() const { return cuFakeCalls("cuStreamWaitEvent") - waits_; }
  unsigned long long all() const { return cuFakeCalls("") - all_; }

 private:
  unsigned long long records_ = cuFakeCalls("cuEventRecord");
  unsigned long long waits_ = cuFakeCalls("cuStreamWaitEvent");
  unsigned long long all_ = cuFakeCalls("");
};

constexpr int kRounds = 100;

std::size_t number(const char* name) {
  const char* const given = std::getenv(name);
  return given == nullptr ? 0 : std::strtoull(given, nullptr, 10);
}

// Pairs, as many as the test asks for: what one takes is the difference between two such programs.
[[gnu::noinline]] void runPairs(std::size_t count, std::size_t bytes) {
  for (std::size_t i = 0; i < count; ++i) EXPECT(cuMemFree(allocated(bytes)) == CUDA_SUCCESS);
}
void pairs() {
  begin();
  runPairs(number("PAIRS"), number("BYTES"));
}

// The first rounds find out what there is, and take memory.
template <class Round>
Calls afterTheFirst(Round round) {
  for (int i = 0; i < 4; ++i) round(i);
  return {};
}

void withoutWork() {
  begin();
  const auto round = [](int) { EXPECT(cuMemFree(allocated()) == CUDA_SUCCESS); };
  const Calls calls = afterTheFirst(round);
  for (int i = 0; i < kRounds; ++i) round(i);
  EXPECT(calls.all() == 0);  // none whatever
}

// One stream: where each cudaFree lies is marked before the next work, and nothing waits.
void oneStream() {
  begin();
  const CUstream streams[] = {nullptr, CU_STREAM_PER_THREAD, makeStream(CU_STREAM_NON_BLOCKING)};
  for (const CUstream stream : streams) {
    const auto round = [&](int) {
      const CUdeviceptr memory = allocated();
      launch(stream, memory);
      EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
    };
    EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
    const Calls calls = afterTheFirst(round);
    for (int i = 0; i < kRounds; ++i) round(i);
    EXPECT(calls.records() == kRounds);
    EXPECT(calls.waits() == (stream == CU_STREAM_PER_THREAD ? kRounds : 0));
    EXPECT(calls.all() == calls.records() + calls.waits() + kRounds);
  }
  EXPECT(cuFakeRaces() == 0);
}

// Who waits for the device itself has nothing to mark.
void oneStreamThatIsWaitedFor() {
  begin();
  const CUstream stream = makeStream(CU_STREAM_NON_BLOCKING);
  for (const bool all : {true, false}) {
    const auto round = [&](int) {
      const CUdeviceptr memory = allocated();
      launch(stream, memory);
      EXPECT((all ? cuCtxSynchronize() : cuStreamSynchronize(stream)) == CUDA_SUCCESS);
      EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
    };
    const Calls calls = afterTheFirst(round);
    for (int i = 0; i < kRounds; ++i) round(i);
    EXPECT(calls.records() + calls.waits() == 0);
  }
}

// Two by turns: one is marked, and the other waits.
void twoStreams() {
  begin();
  const CUstream streams[] = {makeStream(CU_STREAM_NON_BLOCKING),
                              makeStream(CU_STREAM_NON_BLOCKING)};
  const auto round = [&](int i) {
    const CUdeviceptr memory = allocated();
    launch(streams[i % 2], memory);
    EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
  };
  const Calls calls = afterTheFirst(round);
  for (int i = 0; i < kRounds; ++i) round(i);
  EXPECT(calls.records() == kRounds && calls.waits() == kRounds);
  EXPECT(cuFakeRaces() == 0);
}

// Two at once: both are gathered, and both wait for the marker.
void twoStreamsAtOnce() {
  begin();
  const CUstream streams[] = {makeStream(CU_STREAM_NON_BLOCKING),
                              makeStream(CU_STREAM_NON_BLOCKING)};
  const auto round = [&](int) {
    const CUdeviceptr one = allocated(), other = allocated();
    launch(streams[0], one);
    launch(streams[1], other);
    EXPECT(cuMemFree(one) == CUDA_SUCCESS && cuMemFree(other) == CUDA_SUCCESS);
  };
  const Calls calls = afterTheFirst(round);
  for (int i = 0; i < kRounds; ++i) round(i);
  EXPECT(calls.records() == 3 * kRounds);
  EXPECT(calls.waits() == 4 * kRounds);
  EXPECT(cuFakeRaces() == 0);
}

// ---- What must not be ordered -------------------------------------------------------------------

// Work behind a cudaFree need not wait for work that was submitted behind it as well, on another
// stream: that may wait for it in turn. The marker lies where the cudaFree was.
void noMoreThanThat() {
  begin();
  const CUstream one = makeStream(CU_STREAM_NON_BLOCKING),
                 other = makeStream(CU_STREAM_NON_BLOCKING);
  const CUdeviceptr memory = allocated(), long_used = allocated();
  launch(one, memory, kBytes, 1000);
  EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
  launch(one, long_used, kBytes, 1'000'000'000'000);  // behind the cudaFree, and for a long time
  const unsigned long long begin = cuFakeNow();
  const CUdeviceptr again = allocated();
  launch(other, again, kBytes, 1000);
  EXPECT(cuStreamSynchronize(other) == CUDA_SUCCESS);
  EXPECT(cuFakeNow() - begin < 1'000'000'000);
  EXPECT(cuFakeRaces() == 0);
}

// Nor is anything put behind a stream that is captured: its work is none yet, and an event there
// would draw whoever waits for it into the capture. What is freed meanwhile is in order afterwards.
void freedInACapture() {
  begin();
  const CUstream captured = makeStream(CU_STREAM_NON_BLOCKING),
                 user = makeStream(CU_STREAM_NON_BLOCKING);
  const CUdeviceptr memory = allocated(), in_graph = allocated(), other = allocated();
  launch(captured, in_graph, kBytes, 1000);  // it has work that a cut would have to come after
  launch(user, memory, kBytes, 10 * kLong);
  beginCapture(captured);
  EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
  launch(user, other, kBytes, 1);
  launch(captured, in_graph);
  EXPECT(endCapture(captured) != nullptr);
  const CUdeviceptr again = allocated();
  launch(makeStream(CU_STREAM_NON_BLOCKING), again);
  EXPECT(cuFakeRaces() == 0);
}

// ---- Between two threads ------------------------------------------------------------------------

CUstream stream_a = nullptr, stream_b = nullptr, stream_c = nullptr;
CUdeviceptr shared_memory = 0;
CUcontext shared_context = nullptr;

void beginWithThree() {
  begin();
  EXPECT(cuCtxGetCurrent(&shared_context) == CUDA_SUCCESS);
  for (CUstream* const stream : {&stream_a, &stream_b, &stream_c})
    *stream = makeStream(CU_STREAM_NON_BLOCKING);
  EXPECT(cuMemFree(allocated()) == CUDA_SUCCESS);  // what is found out first is found out
  launch(stream_a, allocated(4096), 4096, 1);
  EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
}
// What another thread does meanwhile.
template <class Call>
void elsewhere(Call call) {
  std::thread([=] {
    EXPECT(cuCtxSetCurrent(shared_context) == CUDA_SUCCESS);
    call();
  }).join();
}
void useAndFree(CUstream stream) {
  const CUdeviceptr memory = allocated();
  launch(stream, memory, kBytes, 1000);
  EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
}

// A cudaFree of another thread's, and work behind it, come while a launch is on its way: that
// counts as work behind the marker.
void whileLaunching() {
  beginWithThree();
  const CUdeviceptr memory = allocated();
  cuFakeDuring("cuLaunchKernel", [] {
    elsewhere([] {
      useAndFree(stream_b);
      useAndFree(stream_b);
    });
  });
  launch(stream_a, memory);
  EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
  launch(stream_b, allocated());
  EXPECT(cuFakeRaces() == 0);
}

// The same where the marker lies behind other work, that of stream c, and the launch has not waited
// for it. The next marker lies on the stream of that launch, as nothing else was submitted since:
// it comes after the first one all the same.
void markerAfterMarker() {
  beginWithThree();
  shared_memory = allocated();
  launch(stream_c, shared_memory, kBytes, 10 * kLong);
  const CUdeviceptr memory = allocated(), freed = allocated(2 * kBytes);
  cuFakeDuring("cuLaunchKernel", [] {
    elsewhere([] {
      EXPECT(cuMemFree(shared_memory) == CUDA_SUCCESS);
      endCapture(beginCapture(stream_b));  // it is marked before a capture begins
    });
  });
  launch(stream_a, memory, kBytes, 1000);
  const CUdeviceptr again = allocated();
  EXPECT(again == shared_memory);
  EXPECT(cuMemFree(freed) == CUDA_SUCCESS);
  launch(makeStream(CU_STREAM_NON_BLOCKING), again);
  EXPECT(cuFakeRaces() == 0);
}

// What is submitted while a thread waits for the device is not waited for.
void whileWaiting() {
  beginWithThree();
  shared_memory = allocated();
  cuFakeDuring("the end of cuCtxSynchronize",
               [] { elsewhere([] { launch(stream_a, shared_memory); }); });
  EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
  EXPECT(cuMemFree(shared_memory) == CUDA_SUCCESS);
  launch(stream_b, allocated());
  EXPECT(cuFakeRaces() == 0);
}

// ---- Pages --------------------------------------------------------------------------------------

// Memory goes from one stream's to another's behind what has used it: there is enough for one of
// the two blocks alone. Once it is cudaMalloc's; once a cudaMallocAsync's, of a stream that is
// gone, used by another.
void memoryThatMoves() {
  begin();
  const CUstream user = makeStream(CU_STREAM_NON_BLOCKING),
                 next = makeStream(CU_STREAM_NON_BLOCKING);
  const std::size_t much = std::size_t(80) << 20;
  CUdeviceptr memory = allocated(much);
  launch(user, memory, much, 10 * kLong);
  EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
  EXPECT(cuMemAllocAsync(&memory, much, next) == CUDA_SUCCESS);
  launch(next, memory, much, 1000);
  EXPECT(cuFakeRaces() == 0);

  EXPECT(cuStreamSynchronize(next) == CUDA_SUCCESS);
  EXPECT(cuStreamDestroy(next) == CUDA_SUCCESS);
  launch(user, memory, much, 10 * kLong);
  EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
  memory = allocated(much + much / 8);  // of pages, wherever they were
  launch(makeStream(CU_STREAM_NON_BLOCKING), memory, much, 1000);
  EXPECT(cuFakeRaces() == 0);
}

// What was freed goes back to the driver when it is needed there, and while a graph is captured the
// device cannot be waited for: pages that some stream still uses stay where they are. They are
// cudaMalloc's, or those of a stream that has long done what it had itself. Before that a request
// looks whether they are complete.
void memoryThatIsGivenBack() {
  begin();
  const CUstream owner = makeStream(CU_STREAM_NON_BLOCKING),
                 user = makeStream(CU_STREAM_NON_BLOCKING),
                 other = makeStream(CU_STREAM_NON_BLOCKING),
                 captured = makeStream(CU_STREAM_NON_BLOCKING);
  const std::size_t much = std::size_t(80) << 20;
  for (const bool async : {false, true}) {
    CUdeviceptr memory = 0, looks = 0, managed = 0;
    EXPECT((async ? cuMemAllocAsync(&memory, much, owner) : cuMemAlloc(&memory, much)) ==
           CUDA_SUCCESS);
    launch(owner, memory, much, 1000);
    EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
    launch(user, memory, much, 10 * kLong);
    EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
    EXPECT(cuMemAllocAsync(&looks, much / 10, other) == CUDA_SUCCESS);
    beginCapture(captured);
    EXPECT(cuMemAllocManaged(&managed, much, 1) == CUDA_ERROR_OUT_OF_MEMORY);
    (void)endCapture(captured);
    EXPECT(cuFakeRaces() == 0);
    EXPECT(cuMemFreeAsync(looks, other) == CUDA_SUCCESS);
    EXPECT(cuMemAllocManaged(&managed, much, 1) == CUDA_SUCCESS);
    EXPECT(cuMemFree(managed) == CUDA_SUCCESS);
  }
}

// ---- Tables -------------------------------------------------------------------------------------

// What is submitted by a function that nobody has documented counts as work on every stream; where
// the table cannot be read, every cudaFree is followed by a barrier at once.
void privateTables() {
  begin();
  const CUstream one = makeStream(CU_STREAM_NON_BLOCKING),
                 other = makeStream(CU_STREAM_NON_BLOCKING);
  using Launch = CUresult(CUstream, CUdeviceptr, size_t);
  for (const int which : {1, 2}) {
    CUuuid id{};
    id.bytes[0] = char(which);
    const void* table = nullptr;
    EXPECT(cuGetExportTable(&table, &id) == CUDA_SUCCESS);
    const auto launchHidden = reinterpret_cast<Launch*>(static_cast<void* const*>(table)[1]);
    for (int i = 0; i < 20; ++i) {
      for (const CUstream stream : {one, other}) {
        const CUdeviceptr memory = allocated();
        if (i % 2 == 0) {
          EXPECT(launchHidden(stream, memory, kBytes) == CUDA_SUCCESS);
        } else {
          launch(stream, memory);
        }
        EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
      }
    }
    EXPECT(cuFakeRaces() == 0);
  }
  EXPECT(cuFakeCalls("a private table's launch") == 40);
}

// ---- Random programs ----------------------------------------------------------------------------

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

unsigned seed() {
  const char* const given = std::getenv("SEED");
  return given == nullptr ? 1 : unsigned(std::strtoul(given, nullptr, 10));
}

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

const Case kCases[] = {{"pairs", pairs},
                       {"without_work", withoutWork},
                       {"one_stream", oneStream},
                       {"one_stream_that_is_waited_for", oneStreamThatIsWaitedFor},
                       {"two_streams", twoStreams},
                       {"two_streams_at_once", twoStreamsAtOnce},
                       {"no_more_than_that", noMoreThanThat},
                       {"freed_in_a_capture", freedInACapture},
                       {"while_launching", whileLaunching},
                       {"marker_after_marker", markerAfterMarker},
                       {"while_waiting", whileWaiting},
                       {"memory_that_moves", memoryThatMoves},
                       {"memory_that_is_given_back", memoryThatIsGivenBack},
                       {"private_tables", privateTables},
                       {"random", randomStreams},
                       {"random_threads", randomThreads}};

}  // namespace

int main(int argc, char** argv) { return runCase(kCases, argc, argv); }
