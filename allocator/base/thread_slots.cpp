#include "allocator/base/thread_slots.hpp"

#include <pthread.h>

#include "allocator/base/check.hpp"

namespace cistern {
namespace {

struct Hook {
  void (*run)(void*) noexcept;
  void* what;
  Hook* next;
};

constinit thread_local Hook* hooks = nullptr;

// A hook may register another one: it is run in the same walk. One that another library's hook
// registers after this walk makes the thread library call again.
extern "C" void runHooks(void*) {
  while (Hook* const hook = hooks) {
    hooks = hook->next;
    hook->run(hook->what);
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

void atThreadExit(void (*hook)(void*) noexcept, void* what) {
  auto made = std::make_unique<Hook>(Hook{hook, what, hooks});
  // Any value but null asks for the call; it is taken back before each round.
  if (pthread_setspecific(endOfThread(), made.get()) != 0) throw std::bad_alloc();
  hooks = made.release();
}

}  // namespace cistern
