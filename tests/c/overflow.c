/* A part of whole_api.c: memory of the host for what the device has no room for. */
#include <string.h>

#include "parts.h"

void overflows(void) {
  static char text[4096];
  size_t length = sizeof text;
  uint64_t left = 0;
  cistern_allocator_t a = make_sim(256 * kMiB, "");
  cistern_overflow_t figures;
  void *on_device = NULL, *on_host = NULL;
  figures.size = sizeof figures;
  CHECK_OK(cistern_overflow(a, &figures));
  CHECK(figures.host_bytes == 0 && figures.handed_out == 0 && figures.would_do == 0);
  CHECK_OK(cistern_overflow_text(a, text, &length));
  CHECK(strcmp(text, "overflow: off\n") == 0);
  CHECK_OK(cistern_set_overflow(a, 512 * kMiB));
  CHECK_OK(cistern_allocate(a, 256 * kMiB, NULL, &on_device));
  CHECK_OK(cistern_allocate(a, 100 * kMiB, NULL, &on_host));
  CHECK_OK(cistern_overflow(a, &figures));
  CHECK(figures.host_bytes == 512 * kMiB && figures.handed_out == 100 * kMiB);
  CHECK(figures.reserved >= 100 * kMiB && figures.most_reserved == figures.reserved);
  CHECK(figures.would_do >= 356 * kMiB);
  length = sizeof text;
  CHECK_OK(cistern_overflow_text(a, text, &length));
  CHECK(strstr(text, "100.00 MiB of pool {0, 0}") != NULL);
  length = 3;
  CHECK(cistern_overflow_text(a, text, &length) == CISTERN_BUFFER_TOO_SMALL && length > 3);
  figures.size = 8;
  CHECK(cistern_overflow(a, &figures) == CISTERN_INVALID_ARGUMENT);
  CHECK(strstr(cistern_last_error(), "cistern_overflow_t::size is 8") != NULL);
  CHECK(cistern_overflow(a, NULL) == CISTERN_INVALID_ARGUMENT);
  CHECK(cistern_overflow_text(a, text, NULL) == CISTERN_INVALID_ARGUMENT);
  CHECK(cistern_set_overflow(NULL, 0) == CISTERN_INVALID_HANDLE);
  CHECK_OK(cistern_host_bytes_left(&left));
  CHECK(left > 0 && cistern_host_bytes_left(NULL) == CISTERN_INVALID_ARGUMENT);
  CHECK_OK(cistern_free(a, on_host));
  CHECK_OK(cistern_free(a, on_device));
  CHECK_OK(cistern_allocator_destroy(a));
  a = make_sim(0, "backing:segments");
  CHECK(cistern_set_overflow(a, kMiB) == CISTERN_INVALID_ARGUMENT);
  CHECK(strstr(cistern_last_error(), "memory comes in segments") != NULL);
  CHECK_OK(cistern_allocator_destroy(a));
}

/* A state of 160 MiB, and 160 MiB that a step has of its own. */
void peaks(void) {
  cistern_allocator_t a = make_sim(256 * kMiB, "");
  uint64_t bytes = 0, on_host = 0, peak = 0;
  void *state[8], *passing[4];
  int i;
  CHECK_OK(cistern_set_overflow(a, 512 * kMiB));
  for (i = 0; i < 8; ++i) CHECK_OK(cistern_allocate(a, 20 * kMiB, NULL, &state[i]));
  for (i = 0; i < 4; ++i) CHECK_OK(cistern_allocate(a, 40 * kMiB, NULL, &passing[i]));
  for (i = 0; i < 4; ++i) {
    CHECK_OK(cistern_host_bytes_in(a, passing[i], &bytes));
    on_host += bytes;
  }
  CHECK(on_host >= 64 * kMiB && on_host < 160 * kMiB);
  CHECK(cistern_host_bytes_in(a, state[0], NULL) == CISTERN_INVALID_ARGUMENT);
  CHECK(cistern_host_bytes_in(a, &peak, &bytes) == CISTERN_INVALID_POINTER);
  for (i = 0; i < 4; ++i) CHECK_OK(cistern_free(a, passing[i]));
  CHECK_OK(cistern_take_peak(a, &peak));
  CHECK(peak == 320 * kMiB);
  CHECK_OK(cistern_take_peak(a, &peak));
  CHECK(peak == 160 * kMiB);
  CHECK(cistern_take_peak(a, NULL) == CISTERN_INVALID_ARGUMENT);
  CHECK(cistern_take_peak(NULL, &peak) == CISTERN_INVALID_HANDLE);
  for (i = 0; i < 8; ++i) CHECK_OK(cistern_free(a, state[i]));
  CHECK_OK(cistern_allocator_destroy(a));
}
