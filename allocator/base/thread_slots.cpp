#include "allocator/base/thread_slots.hpp"

#include <atomic>

#include <dlfcn.h>
#include <pthread.h>

#include "allocator/base/check.hpp"
#include "allocator/base/process.hpp"

namespace cistern {
namespace {

struct Hook {
  void (*run)(void*) noexcept;
  void* what;
  Hook* next;
  Birthplace made;
};

constinit thread_local Hook* hooks = nullptr;

// A hook may register another one, which runs in the same walk. If another library's hook registers
// one after this walk, the thread library calls again. A child of fork does not run hooks from
// before the fork: they take locks that a vanished thread may hold.
extern "C" void runHooks(void*) {
  while (Hook* const hook = hooks) {
    hooks = hook->next;
    if (hook->made.isHere()) hook->run(hook->what);
    delete hook;
  }
}

pthread_key_t endOfThread() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    CISTERN_CHECK(pthread_key_create(&made, runHooks) == 0);
    return made;
  }();
  return key;
}

}  // namespace

// A key lives as long as the process. Threads that used this code may end after dlclose of the
// library that contains it. So that library stays loaded: dlclose then has no effect. (Nothing else
// is sure to hold it. Only g++ marks inline variables as unique, and only exported ones.) The
// program itself is never unloaded; for it the second call may fail. That call takes the loader's
// lock. A thread that loads a library holds it while the library's constructors pass here. So no
// lock of ours is held here, and no static is being made.
void stayLoaded() noexcept {
  static constinit std::atomic<bool> stays{false};
  if (stays.load(std::memory_order_relaxed)) return;
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&runHooks), &self) == 0) return;
  (void)dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  stays.store(true, std::memory_order_relaxed);
}

void atThreadExit(void (*hook)(void*) noexcept, void* what) {
  stayLoaded();
  auto made = std::make_unique<Hook>(Hook{hook, what, hooks, {}});
  // Any value but null requests the call. The thread library clears it before each round.
  if (pthread_setspecific(endOfThread(), made.get()) != 0) throw std::bad_alloc();
  hooks = made.release();
}

}  // namespace cistern
