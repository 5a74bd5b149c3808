#include "allocator/emptying/emptied_by_command.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "allocator/base/mutex.hpp"
#include "allocator/base/process.hpp"
#include "allocator/base/thread_slots.hpp"
#include "allocator/emptying/door.hpp"
#include "allocator/engine/exchange/exchange.hpp"

namespace cistern::emptied_by_command {
namespace {

bool wantsToListen() noexcept {
  const char* const value = secure_getenv("CISTERN_SLEEPABLE");
  return value != nullptr && value[0] != '\0' && std::string_view(value) != "0";
}

class Reached {
 public:
  static Reached& one() {
    static Reached& made = []() -> Reached& {
      Reached& reached = processWide<Reached>();
      inChildOfFork([] { one().beginAnew(); });  // which runs when its lock is free again
      return reached;
    }();
    return made;
  }

  void add(Engine& engine) {
    const MutexLock lock(mutex);
    engines_.push_back(&engine);
    if (tried_) return;
    tried_ = true;
    door_ = openDoor(emptyAll);
  }

  void remove(Engine& engine) noexcept {
    {
      const MutexLock lock(mutex);
      std::erase(engines_, &engine);
    }
    busy_.wait(&engine);
  }

  std::vector<Engine*> all() {
    const MutexLock lock(mutex);
    return engines_;
  }

  /// Whether the allocator is still there. Then it stays until letGo().
  bool hold(Engine* engine) noexcept {
    const MutexLock lock(mutex);
    if (std::ranges::find(engines_, engine) == engines_.end()) return false;
    busy_ = engine;
    return true;
  }
  void letGo() noexcept {
    busy_ = nullptr;
    busy_.notify_all();
  }

  Mutex mutex{LockRank::kEmptiedByCommand};

 private:
  // The parent's allocators are nothing to the child, and the thread is not there.
  void beginAnew() noexcept {
    const MutexLock lock(mutex);
    engines_.clear();
    busy_ = nullptr;
    tried_ = false;
    if (door_ >= 0) (void)close(door_);
    door_ = -1;
  }

  std::vector<Engine*> engines_ CISTERN_GUARDED_BY(mutex);
  bool tried_ CISTERN_GUARDED_BY(mutex) = false;  ///< whether this process has opened its door
  int door_ CISTERN_GUARDED_BY(mutex) = -1;       ///< its descriptor; -1: there is none
  std::atomic<Engine*> busy_{nullptr};            ///< the one that is being emptied
};

void empty(Engine& engine, EmptyAnswer& answer) noexcept {
  answer.allocators += 1;
  answer.before += engine.limit.reserved();
  try {
    cistern::emptyCache(engine);
    engine.memory_hooks.deliver();
    (void)engine.hooks.tidy(Tidying::kEmptied);
  } catch (const std::exception&) {
    answer.failed += 1;
  }
  answer.after += engine.limit.reserved();
}

}  // namespace

void add(Engine& engine) noexcept try {
  if (!wantsToListen()) return;
  stayLoaded();
  Reached::one().add(engine);
} catch (const std::exception& error) {
  std::fprintf(stderr, "cistern: %s; `cistern sleep` will not empty this process's caches\n",
               error.what());
}

void remove(Engine& engine) noexcept {
  if (wantsToListen()) Reached::one().remove(engine);
}

EmptyAnswer emptyAll() noexcept try {
  EmptyAnswer answer;
  for (Engine* const engine : Reached::one().all()) {
    if (!driverMayBeCalled() || !Reached::one().hold(engine)) continue;
    empty(*engine, answer);
    Reached::one().letGo();
  }
  return answer;
} catch (const std::exception&) {  // no host memory for the list
  EmptyAnswer answer;
  answer.failed = 1;
  return answer;
}

}  // namespace cistern::emptied_by_command
