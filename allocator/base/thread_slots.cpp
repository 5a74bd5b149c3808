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

// A hook may register another one: it is run in the same walk. One that another library's hook
// registers after this walk makes the thread library call again. In a
// child of fork those from before the fork are not: they take locks that a vanished thread may
// hold.
extern "C" void runHooks(void*) {
  while (Hook* const hook = hooks) {
    hooks = hook->next;
    if (hook->made.isHere()) hook->run(hook->what);
    delete hook;
  }
}

// A key lives as long as the process, and threads that used this code may end after dlclose of the
// library that it is part of. So that library stays loaded: dlclose is then without effect.
// (Nothing else holds it for sure: only g++ marks inline variables as unique, and only exported
// ones.) The program itself is never unloaded; for it the second call may say no.
// The loader's lock is taken for it, which a thread that loads a library holds while constructors
// of that one come by here: so no lock of ours is held, nor a static being made.
void stayLoaded() noexcept {
  static constinit std::atomic<bool> stays{false};
  if (stays.load(std::memory_order_relaxed)) return;
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&runHooks), &self) == 0) return;
  (void)dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  stays.store(true, std::memory_order_relaxed);
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

void atThreadExit(void (*hook)(void*) noexcept, void* what) {
  stayLoaded();
  auto made = std::make_unique<Hook>(Hook{hook, what, hooks, {}});
  // Any value but null asks for the call; it is taken back before each round.
  if (pthread_setspecific(endOfThread(), made.get()) != 0) throw std::bad_alloc();
  hooks = made.release();
}

}  // namespace cistern
