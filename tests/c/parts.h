/* What the files of the C test program share. */
#ifndef CISTERN_TESTS_C_PARTS_H
#define CISTERN_TESTS_C_PARTS_H

#include "check.h"

enum { kMiB = 1 << 20 };

cistern_allocator_t make_sim(uint64_t capacity, const char* conf);
void overflows(void);
void peaks(void);

#endif
