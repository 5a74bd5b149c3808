/* What the files of the C test program share. */
#ifndef CISTERN_TESTS_C_PARTS_H
#define CISTERN_TESTS_C_PARTS_H

#include "check.h"

enum { kMiB = 1 << 20 };

cistern_allocator_t make_sim(uint64_t capacity, const char* conf);
/* On a real device, if the program was given one: the capacity is a limit there; 0: none. */
cistern_allocator_t make(uint64_t capacity, const char* conf);
void overflows(void);
void peaks(void);
void holds(void);
void memory_hooks(void);

#endif
