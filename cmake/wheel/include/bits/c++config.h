// The compiler's libstdc++ was set up for a newer glibc than the sysroot has. This header stands
// before the compiler's own, and takes back what it says of that glibc.
#pragma once
#include_next <bits/c++config.h>
#undef _GLIBCXX_USE_PTHREAD_COND_CLOCKWAIT
#undef _GLIBCXX_USE_PTHREAD_MUTEX_CLOCKLOCK
#undef _GLIBCXX_USE_PTHREAD_RWLOCK_CLOCKLOCK
