// Whether tests of this build may fork while other threads work.
#pragma once

#include "allocator/base/sanitizers.hpp"

// 0: a child of such a fork may only end by _exit. The sanitizers have locks of their own, around
// malloc and the threads. A thread that vanishes at the fork may hold one, for ever.
#if defined(CISTERN_ADDRESS_SANITIZER) || defined(CISTERN_THREAD_SANITIZER)
#define CISTERN_FORKS_AMID_THREADS 0
#else
#define CISTERN_FORKS_AMID_THREADS 1
#endif
