// What the tests' programs say when something is not as it should be. They include no test library:
// they are to be like anybody's program.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>

inline int failures = 0;

inline bool expectThat(bool holds, const char* what, const char* file, int line) {
  if (holds) return true;
  std::fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
  ++failures;
  return false;
}
#define EXPECT(...) expectThat(bool(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

/// A function of the loaded driver's, by name.
template <class Function>
Function* driverFunction(const char* name) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) {
    std::fprintf(stderr, "no %s\n", name);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

struct Case {
  const char* name;
  void (*run)();
};

template <class Cases>
int runCase(const Cases& cases, int argc, char** argv) {
  for (const Case& one : cases) {
    if (argc < 2 || std::strcmp(argv[1], one.name) != 0) continue;
    one.run();
    return failures == 0 ? 0 : 1;
  }
  std::fprintf(stderr, "no such case\n");
  return 2;
}
