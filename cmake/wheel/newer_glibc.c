// What the compiler's libstdc++.a takes of a glibc that is newer than the sysroot's. Each part of
// the wheel has a hidden copy.
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

// glibc 2.32. Never true here: reference counts are then always atomic.
HIDDEN char __libc_single_threaded = 0;

// glibc 2.36. std::random_device calls it.
HIDDEN uint32_t arc4random(void) {
  uint32_t number = 0;
  while (getentropy(&number, sizeof number) != 0)
    if (errno != EINTR) abort();
  return number;
}

// glibc 2.38. They read binary numbers too, which libstdc++ asks for nowhere.
HIDDEN long __isoc23_strtol(const char* text, char** end, int base) {
  return strtol(text, end, base);
}
HIDDEN unsigned long __isoc23_strtoul(const char* text, char** end, int base) {
  return strtoul(text, end, base);
}
