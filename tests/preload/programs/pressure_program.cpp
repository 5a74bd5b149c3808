// Requests for which the driver has room only when Cistern has given back what it keeps.
// FAKE_CAPACITY is 256 MiB.
#include <thread>

#include <unistd.h>

#include "tests/preload/programs/gpu_names.hpp"

namespace {

constexpr std::size_t kKept = std::size_t{192} << 20, kAsked = std::size_t{96} << 20;

using Malloc = int (*)(Memory*, std::size_t);

gpu::Thread others_thread;
Malloc others_malloc = nullptr;
std::thread other;
Memory others = nullptr;
int others_result = -1;

// As memory is given back for the first thread: the other one asks, and is refused by the driver,
// before there is room. It cannot be waited for, since its turn comes later.
void whileGivingBack() {
  other = std::thread([] {
    gpu::takeOver(others_thread);
    others_result = others_malloc(&others, kAsked);
  });
  usleep(200'000);
}

// There is room for both when all is given back; and the thread that comes second finds nothing to
// give.
void twoAtOnce() {
  EXPECT(gpu::free(allocated(kKept)) == 0);
  EXPECT(gpu::synchronize() == 0);
  gpu::during(gpu::kGiveBack, whileGivingBack);
  Memory memory = nullptr;
  EXPECT(gpu::mallocManaged(&memory, kAsked) == 0);
  if (!EXPECT(other.joinable())) return;
  other.join();
  EXPECT(others_result == 0);
  EXPECT(gpu::free(memory) == 0);
}

void twoManaged() {
  gpu::begin();
  others_thread = gpu::thisThread();
  others_malloc = gpu::mallocManaged;
  twoAtOnce();
}

// Cistern serves the other thread, in a context of its own, from the same device.
void servedInAnotherContext() {
  gpu::begin();
  const gpu::Thread own = gpu::thisThread();
  others_thread = gpu::makeContext();
  gpu::takeOver(others_thread);
  EXPECT(gpu::free(allocated()) == 0);
  gpu::takeOver(own);
  others_malloc = gpu::malloc;
  twoAtOnce();
}

// What does not fit is refused all the same, and the next that does is not.
void tooMuch() {
  gpu::begin();
  EXPECT(gpu::free(allocated(kKept)) == 0);
  Memory memory = nullptr;
  EXPECT(gpu::mallocManaged(&memory, std::size_t{300} << 20) == kOutOfMemory);
  EXPECT(gpu::malloc(&memory, std::size_t{300} << 20) == kOutOfMemory);
  EXPECT(gpu::free(allocated(kKept)) == 0);
}

void loop() {
  for (int i = 0; i < 5000; ++i) EXPECT(gpu::free(allocated()) == 0);
}

// Nothing was submitted, or what was has been waited for: there is nothing to wait for.
void loopWithoutWork() {
  gpu::begin();
  loop();
  const Memory used = allocated();
  launch(nullptr, used);
  EXPECT(gpu::synchronize() == 0);
  EXPECT(gpu::free(used) == 0);
  loop();
}

// Work goes on, and uses the memory: it is not used again before that is complete.
void usedByWork() {
  gpu::begin();
  const gpu::Stream streams[] = {makeStream(kNonBlocking), makeStream(kNonBlocking)};
  for (int i = 0; i < 200; ++i) {
    const Memory used = allocated();
    launch(streams[i % 2], used);
    EXPECT(gpu::free(used) == 0);
    if (i % 50 == 49) EXPECT(gpu::synchronize() == 0);
  }
  EXPECT(gpu::races() == 0);
}

const Case kCases[] = {{"two_managed", twoManaged},
                       {"served_in_another_context", servedInAnotherContext},
                       {"too_much", tooMuch},
                       {"loop_without_work", loopWithoutWork},
                       {"used_by_work", usedByWork}};

}  // namespace

int main(int argc, char** argv) { return runCase(kCases, argc, argv); }
