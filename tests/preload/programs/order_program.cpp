// A program that is linked to the driver, or to HIP: what is freed while it is in use, and used
// anew by other streams. The fake's race detector says whether the order that cudaFree promises was
// kept.
#include "tests/preload/programs/order_program.hpp"

#include <initializer_list>
#include <thread>

namespace {

// ---- What an order costs ------------------------------------------------------------------------

/// Calls that Cistern has made of the driver, for order, since it was made.
class Calls {
 public:
  unsigned long long records() const { return calls(gpu::kRecord) - records_; }
  unsigned long long waits() const { return calls(gpu::kWait) - waits_; }
  unsigned long long all() const { return calls("") - all_; }

 private:
  unsigned long long records_ = calls(gpu::kRecord);
  unsigned long long waits_ = calls(gpu::kWait);
  unsigned long long all_ = calls("");
};

constexpr int kRounds = 100;

// Pairs, as many as the test asks for: what one takes is the difference between two such programs.
[[gnu::noinline]] void runPairs(std::size_t count, std::size_t bytes) {
  for (std::size_t i = 0; i < count; ++i) EXPECT(gpu::free(allocated(bytes)) == 0);
}
void pairs() {
  gpu::begin();
  runPairs(number("PAIRS"), number("BYTES"));
}

// The first rounds find out what there is, and take memory.
template <class Round>
Calls afterTheFirst(Round round) {
  for (int i = 0; i < 4; ++i) round(i);
  return {};
}

void withoutWork() {
  gpu::begin();
  const auto round = [](int) { EXPECT(gpu::free(allocated()) == 0); };
  const Calls calls = afterTheFirst(round);
  for (int i = 0; i < kRounds; ++i) round(i);
  EXPECT(calls.all() == 0);  // none whatever
}

// One stream: where each cudaFree lies is marked before the next work, and nothing waits.
void oneStream() {
  gpu::begin();
  const gpu::Stream streams[] = {nullptr, kOwn, makeStream(kNonBlocking)};
  for (const gpu::Stream stream : streams) {
    const auto round = [&](int) {
      const Memory memory = allocated();
      launch(stream, memory);
      EXPECT(gpu::free(memory) == 0);
    };
    EXPECT(gpu::synchronize() == 0);
    const Calls calls = afterTheFirst(round);
    for (int i = 0; i < kRounds; ++i) round(i);
    EXPECT(calls.records() == kRounds);
    EXPECT(calls.waits() == (stream == kOwn ? kRounds : 0));
    EXPECT(calls.all() == calls.records() + calls.waits() + kRounds);
  }
  EXPECT(gpu::races() == 0);
}

// Who waits for the device itself has nothing to mark.
void oneStreamThatIsWaitedFor() {
  gpu::begin();
  const gpu::Stream stream = makeStream(kNonBlocking);
  for (const bool all : {true, false}) {
    const auto round = [&](int) {
      const Memory memory = allocated();
      launch(stream, memory);
      EXPECT((all ? gpu::synchronize() : gpu::synchronizeStream(stream)) == 0);
      EXPECT(gpu::free(memory) == 0);
    };
    const Calls calls = afterTheFirst(round);
    for (int i = 0; i < kRounds; ++i) round(i);
    EXPECT(calls.records() + calls.waits() == 0);
  }
}

// Two by turns: one is marked, and the other waits.
void twoStreams() {
  gpu::begin();
  const gpu::Stream streams[] = {makeStream(kNonBlocking), makeStream(kNonBlocking)};
  const auto round = [&](int i) {
    const Memory memory = allocated();
    launch(streams[i % 2], memory);
    EXPECT(gpu::free(memory) == 0);
  };
  const Calls calls = afterTheFirst(round);
  for (int i = 0; i < kRounds; ++i) round(i);
  EXPECT(calls.records() == kRounds && calls.waits() == kRounds);
  EXPECT(gpu::races() == 0);
}

// Two at once: both are gathered, and both wait for the marker.
void twoStreamsAtOnce() {
  gpu::begin();
  const gpu::Stream streams[] = {makeStream(kNonBlocking), makeStream(kNonBlocking)};
  const auto round = [&](int) {
    const Memory one = allocated(), other = allocated();
    launch(streams[0], one);
    launch(streams[1], other);
    EXPECT(gpu::free(one) == 0 && gpu::free(other) == 0);
  };
  const Calls calls = afterTheFirst(round);
  for (int i = 0; i < kRounds; ++i) round(i);
  EXPECT(calls.records() == 3 * kRounds);
  EXPECT(calls.waits() == 4 * kRounds);
  EXPECT(gpu::races() == 0);
}

// ---- What must not be ordered -------------------------------------------------------------------

// Work behind a cudaFree need not wait for work that was submitted behind it as well, on another
// stream: that may wait for it in turn. The marker lies where the cudaFree was.
void noMoreThanThat() {
  gpu::begin();
  const gpu::Stream one = makeStream(kNonBlocking), other = makeStream(kNonBlocking);
  const Memory memory = allocated(), long_used = allocated();
  launch(one, memory, kBytes, 1000);
  EXPECT(gpu::free(memory) == 0);
  launch(one, long_used, kBytes, 1'000'000'000'000);  // behind the cudaFree, and for a long time
  const unsigned long long start = gpu::now();
  const Memory again = allocated();
  launch(other, again, kBytes, 1000);
  EXPECT(gpu::synchronizeStream(other) == 0);
  EXPECT(gpu::now() - start < 1'000'000'000);
  EXPECT(gpu::races() == 0);
}

// Nor is anything put behind a stream that is captured: its work is none yet, and an event there
// would draw whoever waits for it into the capture. What is freed meanwhile is in order afterwards.
void freedInACapture() {
  gpu::begin();
  const gpu::Stream captured = makeStream(kNonBlocking), user = makeStream(kNonBlocking);
  const Memory memory = allocated(), in_graph = allocated(), other = allocated();
  launch(captured, in_graph, kBytes, 1000);  // it has work that a cut would have to come after
  launch(user, memory, kBytes, 10 * kMillisecond);
  beginCapture(captured);
  EXPECT(gpu::free(memory) == 0);
  launch(user, other, kBytes, 1);
  launch(captured, in_graph);
  EXPECT(endCapture(captured) != nullptr);
  const Memory again = allocated();
  launch(makeStream(kNonBlocking), again);
  EXPECT(gpu::races() == 0);
}

// ---- Between two threads ------------------------------------------------------------------------

gpu::Stream stream_a = nullptr, stream_b = nullptr, stream_c = nullptr;
Memory shared_memory = nullptr;
gpu::Thread first_thread{};

void beginWithThree() {
  gpu::begin();
  first_thread = gpu::thisThread();
  for (gpu::Stream* const stream : {&stream_a, &stream_b, &stream_c})
    *stream = makeStream(kNonBlocking);
  EXPECT(gpu::free(allocated()) == 0);  // what is found out first is found out
  launch(stream_a, allocated(4096), 4096, 1);
  EXPECT(gpu::synchronize() == 0);
}
// What another thread does meanwhile.
template <class Call>
void elsewhere(Call call) {
  std::thread([=] {
    gpu::takeOver(first_thread);
    call();
  }).join();
}
void useAndFree(gpu::Stream stream) {
  const Memory memory = allocated();
  launch(stream, memory, kBytes, 1000);
  EXPECT(gpu::free(memory) == 0);
}

// A cudaFree of another thread's, and work behind it, come while a launch is on its way: that
// counts as work behind the marker.
void whileLaunching() {
  beginWithThree();
  const Memory memory = allocated();
  gpu::during(gpu::kLaunch, [] {
    elsewhere([] {
      useAndFree(stream_b);
      useAndFree(stream_b);
    });
  });
  launch(stream_a, memory);
  EXPECT(gpu::free(memory) == 0);
  launch(stream_b, allocated());
  EXPECT(gpu::races() == 0);
}

// The same where the marker lies behind other work, that of stream c, and the launch has not waited
// for it. The next marker lies on the stream of that launch, as nothing else was submitted since:
// it comes after the first one all the same.
void markerAfterMarker() {
  beginWithThree();
  shared_memory = allocated();
  launch(stream_c, shared_memory, kBytes, 10 * kMillisecond);
  const Memory memory = allocated(), freed = allocated(2 * kBytes);
  gpu::during(gpu::kLaunch, [] {
    elsewhere([] {
      EXPECT(gpu::free(shared_memory) == 0);
      endCapture(beginCapture(stream_b));  // it is marked before a capture begins
    });
  });
  launch(stream_a, memory, kBytes, 1000);
  const Memory again = allocated();
  EXPECT(again == shared_memory);
  EXPECT(gpu::free(freed) == 0);
  launch(makeStream(kNonBlocking), again);
  EXPECT(gpu::races() == 0);
}

// What is submitted while a thread waits for the device is not waited for.
void whileWaiting() {
  beginWithThree();
  shared_memory = allocated();
  gpu::during(gpu::kEndOfSynchronize, [] { elsewhere([] { launch(stream_a, shared_memory); }); });
  EXPECT(gpu::synchronize() == 0);
  EXPECT(gpu::free(shared_memory) == 0);
  launch(stream_b, allocated());
  EXPECT(gpu::races() == 0);
}

// ---- Pages --------------------------------------------------------------------------------------

// Memory goes from one stream's to another's behind what has used it: there is enough for one of
// the two blocks alone. Once it is cudaMalloc's; once a cudaMallocAsync's, of a stream that is
// gone, used by another.
void memoryThatMoves() {
  gpu::begin();
  const gpu::Stream user = makeStream(kNonBlocking), next = makeStream(kNonBlocking);
  const std::size_t much = std::size_t(80) << 20;
  Memory memory = allocated(much);
  launch(user, memory, much, 10 * kMillisecond);
  EXPECT(gpu::free(memory) == 0);
  EXPECT(gpu::mallocAsync(&memory, much, next) == 0);
  launch(next, memory, much, 1000);
  EXPECT(gpu::races() == 0);

  EXPECT(gpu::synchronizeStream(next) == 0);
  EXPECT(gpu::destroyStream(next) == 0);
  launch(user, memory, much, 10 * kMillisecond);
  EXPECT(gpu::free(memory) == 0);
  memory = allocated(much + much / 8);  // of pages, wherever they were
  launch(makeStream(kNonBlocking), memory, much, 1000);
  EXPECT(gpu::races() == 0);
}

// What was freed goes back to the driver when it is needed there, and while a graph is captured the
// device cannot be waited for: pages that some stream still uses stay where they are. They are
// cudaMalloc's, or those of a stream that has long done what it had itself. Before that a request
// looks whether they are complete.
void memoryThatIsGivenBack() {
  gpu::begin();
  const gpu::Stream owner = makeStream(kNonBlocking), user = makeStream(kNonBlocking),
                    other = makeStream(kNonBlocking), captured = makeStream(kNonBlocking);
  const std::size_t much = std::size_t(80) << 20;
  for (const bool async : {false, true}) {
    Memory memory = nullptr, looks = nullptr, managed = nullptr;
    EXPECT((async ? gpu::mallocAsync(&memory, much, owner) : gpu::malloc(&memory, much)) == 0);
    launch(owner, memory, much, 1000);
    EXPECT(gpu::synchronize() == 0);
    launch(user, memory, much, 10 * kMillisecond);
    EXPECT(gpu::free(memory) == 0);
    EXPECT(gpu::mallocAsync(&looks, much / 10, other) == 0);
    beginCapture(captured);
    EXPECT(gpu::mallocManaged(&managed, much) == kOutOfMemory);
    (void)endCapture(captured);
    EXPECT(gpu::races() == 0);
    EXPECT(gpu::freeAsync(looks, other) == 0);
    EXPECT(gpu::mallocManaged(&managed, much) == 0);
    EXPECT(gpu::free(managed) == 0);
  }
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
                       {"random", randomStreams},
                       {"random_threads", randomThreads}};

}  // namespace

int main(int argc, char** argv) { return runCase(kCases, argc, argv); }
