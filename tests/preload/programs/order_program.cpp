// A program on the driver, linked to it: what is freed while it is in use, and used anew by other
// streams. The fake driver's race detector says whether the order that cudaFree promises was kept.
#include <initializer_list>
#include <thread>

#include "tests/preload/programs/on_the_driver.hpp"

namespace {

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
