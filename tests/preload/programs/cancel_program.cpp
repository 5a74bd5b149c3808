// Threads that are cancelled (pthread_cancel) while the driver waits.
#include <atomic>
#include <thread>

#include <pthread.h>
#include <unistd.h>

#include "tests/preload/programs/gpu_names.hpp"

namespace {

std::atomic<bool> is_there{false}, is_cancelled{false};
Memory memory = nullptr;
int result = -1;

// The driver waits where a thread may be cancelled.
void waits() {
  is_there = true;
  while (!is_cancelled) usleep(1000);
  for (int i = 0; i < 10; ++i) usleep(1000);
}

// The thread's body is cancelled while a call of the driver's of that name waits.
void cancelIn(const char* name, void* (*body)(void*)) {
  gpu::begin();
  EXPECT(gpu::free(allocated()) == 0);
  gpu::Thread own = gpu::thisThread();
  gpu::during(name, waits);
  pthread_t thread{};
  EXPECT(pthread_create(&thread, nullptr, body, &own) == 0);
  while (!is_there) usleep(1000);
  EXPECT(pthread_cancel(thread) == 0);
  is_cancelled = true;
  void* ended = nullptr;
  EXPECT(pthread_join(thread, &ended) == 0);
  EXPECT(ended == PTHREAD_CANCELED);
}

void worksOn() {
  EXPECT(gpu::free(allocated(std::size_t{64} << 20)) == 0);
  EXPECT(gpu::synchronize() == 0);
  EXPECT(gpu::races() == 0);
}

void whileWaiting() {
  cancelIn(gpu::kSynchronize, [](void* thread) -> void* {
    gpu::takeOver(*static_cast<gpu::Thread*>(thread));
    result = gpu::synchronize();
    return nullptr;
  });
  EXPECT(result == -1);
  worksOn();
}

void whileLaunching() {
  cancelIn(gpu::kLaunch, [](void* thread) -> void* {
    gpu::takeOver(*static_cast<gpu::Thread*>(thread));
    const Memory used = allocated();
    result = gpu::launch(nullptr, used, kBytes, kMillisecond);
    return nullptr;
  });
  EXPECT(result == -1);
  worksOn();
}

// Cistern is asking for memory: it gets it, and the thread is cancelled afterwards.
void whileAllocating() {
  if (!served()) return;
  cancelIn(gpu::kTake, [](void* thread) -> void* {
    gpu::takeOver(*static_cast<gpu::Thread*>(thread));
    result = gpu::malloc(&memory, std::size_t{128} << 20);
    pthread_testcancel();
    return nullptr;
  });
  EXPECT(result == 0);
  EXPECT(gpu::free(memory) == 0);
  worksOn();
}

const Case kCases[] = {{"while_waiting", whileWaiting},
                       {"while_launching", whileLaunching},
                       {"while_allocating", whileAllocating}};

}  // namespace

int main(int argc, char** argv) { return runCase(kCases, argc, argv); }
