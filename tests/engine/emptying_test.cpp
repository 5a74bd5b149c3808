// Caches that are emptied because `cistern sleep` asks: which allocators are reached, and that they
// may go meanwhile. tests/command/sleep has the socket, and the command.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "allocator/emptying/emptied_by_command.hpp"
#include "tests/engine/engine_support.hpp"
#include "tests/support/child_process.hpp"

namespace cistern::test {
namespace {

using emptied_by_command::emptyAll;

/// In a process of its own, as the variable holds for all allocators that are made from then on.
bool worksWhenSleepable(const char* said, const auto& body) {
  return statusOfChild([&] {
           ::setenv("CISTERN_SLEEPABLE", said, 1);
           if (!body()) std::_Exit(1);
         }) == 0;
}

/// Without the checks at its end, which are for one thread at a time.
struct Plain {
  std::unique_ptr<Device> device = openDevice("sim");
  CachingAllocator allocator{*device, optionsOf()};
};

constexpr int kForks = CISTERN_FORKS_AMID_THREADS ? 10 : 0;

void cacheSome(auto& rig) { rig.allocator.free(rig.allocator.allocate(8 * kMiB, Stream{})); }

}  // namespace

TEST_CASE("all allocators that ask for it are emptied, and what they keep in use stays") {
  CHECK(worksWhenSleepable("1", [] {
    SimRig first, second;
    cacheSome(first);
    (void)second.allocator.allocate(4 * kMiB, Stream{});
    cacheSome(second);
    const EmptyAnswer answer = emptyAll(), again = emptyAll();
    return answer.allocators == 2 && answer.failed == 0 && answer.before > answer.after &&
           answer.after >= 4 * kMiB && again.before == answer.after && again.after == answer.after;
  }));
}

TEST_CASE("an allocator that does not ask for it, or has gone, is not reached") {
  for (const char* said : {"0", ""}) {
    CHECK(worksWhenSleepable(said, [] {
      SimRig rig;
      cacheSome(rig);
      return emptyAll().allocators == 0;
    }));
  }
  CHECK(worksWhenSleepable("1", [] {
    { SimRig gone; }
    return emptyAll().allocators == 0;
  }));
}

TEST_CASE("an allocator that fails is counted, and the others are emptied") {
  CHECK(worksWhenSleepable("1", [] {
    SimRig first, second;
    cacheSome(first);
    cacheSome(second);
    first.allocator.engine().hooks.tidy.set([](Tidying) -> bool { throw Error("no"); });
    const EmptyAnswer answer = emptyAll();
    return answer.allocators == 2 && answer.failed == 1 && answer.after < answer.before;
  }));
}

TEST_CASE("allocators come, go and fork while all are emptied") {
  CHECK(worksWhenSleepable("1", [] {
    { Plain first; }  // what a process makes once is not being made when it forks
    std::atomic<bool> ends{false};
    std::thread empties([&] {
      while (!ends) (void)emptyAll();
    });
    std::vector<std::thread> programs;
    for (int i = 0; i < 3; ++i) {
      programs.emplace_back([] {
        for (int round = 0; round < 50; ++round) {
          Plain rig;
          for (int block = 0; block < 20; ++block) cacheSome(rig);
        }
      });
    }
    const bool forked = allChildrenExit(kForks, [] {
      Plain own;
      cacheSome(own);
      if (emptyAll().allocators != 1) std::_Exit(1);
    });
    for (std::thread& program : programs) program.join();
    ends = true;
    empties.join();
    return forked && emptyAll().allocators == 0;
  }));
}

}  // namespace cistern::test
