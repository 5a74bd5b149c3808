#include "allocator/base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace cistern {

// Plain stdio: the heap may be what is broken, so nothing here allocates.
void checkFailed(const char* expression, const char* file, int line) noexcept {
  std::fprintf(stderr, "cistern: invariant broken: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace cistern
