/* What the C test programs say when something is not as it is to be. */
#ifndef CISTERN_TESTS_C_CHECK_H
#define CISTERN_TESTS_C_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "cistern/cistern.h"

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      fprintf(stderr, "  the last error: %s\n", cistern_last_error());        \
      exit(1);                                                                \
    }                                                                         \
  } while (0)
#define CHECK_OK(call) CHECK((call) == CISTERN_OK)

#endif
