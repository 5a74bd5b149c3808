// Cistern inside a library that the program loads and closes. In a child process: a thread that
// runs code which is not there any more takes the process with it.
#include <cstdio>
#include <latch>
#include <thread>

#include <dlfcn.h>

#include "tests/support/child_process.hpp"

namespace cistern::test {
namespace {

template <class Function>
Function* in(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

/// False when the library cannot be loaded.
bool useAndClose() {
  void* const library = dlopen(CISTERN_UNLOADED, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return false;
  }
  const auto use = in<void(void*)>(library, "unloaded_use");
  const auto end = in<void(void*)>(library, "unloaded_end");
  void* const inside = in<void*()>(library, "unloaded_make")();
  std::latch used(1), closed(1);
  std::thread user([&] {
    use(inside);
    used.count_down();
    closed.wait();
  });
  used.wait();
  use(inside);
  end(inside);
  const bool done = dlclose(library) == 0;
  closed.count_down();
  user.join();
  return done;
}

}  // namespace

TEST_CASE("a thread that used a library's allocator may end after dlclose", "[engine]") {
  const int status = statusOfChild([] {
    for (int i = 0; i < 3; ++i) {
      if (!useAndClose()) _exit(3);
    }
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace cistern::test
