// Threads that do random things with the memory of one device or two, in several contexts, until
// the time is over or something is not as it should be. A request is refused only where the driver
// alone would refuse it: the threads know together how much they hold, and never ask for more than
// there is, but for requests that nobody could serve. storm_program SECONDS SEED; what each thread
// does follows from the seed, how they meet does not.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "tests/preload/programs/storm_world.hpp"

namespace {

using Clock = std::chrono::steady_clock;

/// Ends the process where no step is done for a minute.
void watch() {
  for (unsigned long long seen = 0, idle = 0;; ++idle) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    const unsigned long long now = storm::steps;
    if (now != seen) idle = 0;
    seen = now;
    if (idle > 60) storm::fault("nothing goes on any more");
  }
}

// All that the threads had is free: nearly all of each device is to be had in one piece.
void afterwards(const std::vector<gpu::Thread>& contexts) {
  for (const gpu::Thread context : contexts) {
    gpu::takeOver(context);
    std::size_t free = 0, total = 0;
    storm::expect(gpu::memoryInfo(&free, &total) == 0 && free <= total,
                  "more is free than there can be");
    Memory all = nullptr;
    const std::size_t most = storm::kCapacity / 4 * 3;
    if (storm::plain()) continue;
    storm::expect(gpu::mallocManaged(&all, most) == 0, "all is free, and is refused");
    storm::expect(gpu::free(all) == 0, "what is all cannot be freed");
    if (storm::evenSizes()) continue;  // it would be cut, and never go back
    storm::expect(gpu::malloc(&all, most) == 0, "all is free, and Cistern refuses it");
    storm::expect(gpu::free(all) == 0, "what is all cannot be freed");
  }
}

void storms(unsigned world_seed) {
  std::mt19937 random(world_seed);
  std::vector<gpu::Thread> contexts = {gpu::thisThread()};
  if (random() % 2 == 0) contexts.push_back(gpu::makeContext());
  if (random() % 3 == 0) contexts.push_back(gpu::otherDevice());
  std::vector<std::thread> threads;
  for (std::size_t i = 0, n = 2 + random() % 6; i < n; ++i) {
    threads.emplace_back([=] { storm::Worker(contexts, world_seed * 16 + unsigned(i)).run(400); });
  }
  for (std::thread& thread : threads) thread.join();
  storm::expect(gpu::races() == 0, "memory is used again too early");
  afterwards(contexts);
  gpu::takeOver(contexts[0]);
  if (contexts.size() > 1 && contexts[1] != contexts.back()) gpu::endContext(contexts[1]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto end = Clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  storm::seed = unsigned(std::atoi(argv[2]));
  setenv("FAKE_CAPACITY", std::to_string(storm::kCapacity).c_str(), 1);
  gpu::begin();
  Memory held = nullptr;  // so that nobody can have it all
  storm::expect(gpu::malloc(&held, storm::kHeld) == 0, "the first request is refused");
  std::thread(watch).detach();
  for (unsigned world = 0; Clock::now() < end; ++world) storms(storm::seed * 100'000 + world);
  std::printf("seed %u: %llu steps, no fault\n", storm::seed, storm::steps.load());
  return 0;
}
