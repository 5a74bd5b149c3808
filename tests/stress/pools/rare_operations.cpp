// What concerns the whole allocator, or the device, or the process.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/stress/pools/pool_worker.hpp"
#include "tests/support/forks.hpp"

namespace cistern::storm {
namespace {

void emptyAll(Worker& worker) { worker.world.allocator.emptyCache(); }

void changeLimit(Worker& worker) {
  const std::uint64_t capacity = worker.world.config.device.capacity;
  const std::uint64_t limit =
      worker.random.oneIn(2) ? capacity : 32 * kMiB + worker.random.below(capacity);
  note("  {} MiB", limit / kMiB);
  worker.world.allocator.setLimit(limit);
}

// A few calls to come, or some of all calls until the plan is cleared.
void planFault(Worker& worker) {
  World& world = worker.world;
  if (!world.config.faults) return;
  const ErrorKind kind = worker.random.oneIn(2) ? ErrorKind::kOutOfMemory : ErrorKind::kOther;
  if (worker.random.oneIn(4)) {
    world.device.faults().failRandomly(0.03, worker.random.next(), kind);
  } else {
    world.device.faults().failNthOfAll(1 + worker.random.below(40), kind);
  }
  world.counts.faults += 1;
}

void clearFaults(Worker& worker) { worker.world.device.faults().clear(); }

// Another program takes memory, or gives it back.
void foreign(Worker& worker) {
  const bool some = worker.random.oneIn(2);
  (void)worker.world.device.foreignUse(some ? worker.random.below(64 * kMiB) : 0);
}

void replaceCallback(Worker& worker) { worker.world.replaceCallback(); }

void audit(Worker& worker) {
  worker.world.allocator.audit();
  worker.world.counts.audits += 1;
}

void statistics(Worker& worker) {
  World& world = worker.world;
  if (world.config.alone) return world.checkStatistics();
  (void)world.allocator.memoryStats();
  if (worker.random.oneIn(10)) world.allocator.resetPeakStats();
}

#if CISTERN_FORKS_AMID_THREADS
// A child that does nothing but end. It has this thread alone, and must not wait for the others.
void forkChild(Worker& worker) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return;
  if (child == 0) {
    ::alarm(60);
    std::exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  mustBe(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM, "a child hangs in exit()");
  mustBe(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child did not exit well");
  worker.world.counts.children += 1;
}
#else
void forkChild(Worker&) {}  // a sanitizer's own end of a process knows nothing of lost threads
#endif

constexpr Operation kRareOperations[] = {
    {"empty the cache", 8, emptyAll},
    {"change the limit", 4, changeLimit},
    {"plan a fault", 6, planFault},
    {"clear faults", 4, clearFaults},
    {"foreign use", 3, foreign},
    {"audit", 3, audit},
    {"statistics", 6, statistics},
    {"fork", 1, forkChild},
    {"replace a callback", 3, replaceCallback},
};

}  // namespace

std::span<const Operation> rareOperations() { return kRareOperations; }

}  // namespace cistern::storm
