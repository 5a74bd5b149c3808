/* The same from C: an allocator, memory on a stream of its device, and a pool. Each call gives a
   status; cistern_last_error() says what was wrong with the last one that failed. */
#include <cistern/cistern.h>
#include <stdio.h>
#include <stdlib.h>

static void check(cistern_status_t status) {
  if (status == CISTERN_OK) return;
  fprintf(stderr, "%s: %s\n", cistern_status_name(status), cistern_last_error());
  exit(1);
}

int main(void) {
  cistern_allocator_t allocator;
  cistern_pool_t pool;
  void *stream, *tensor, *again, *kept;
  const size_t bytes = (size_t)24 << 20;

  printf("Cistern %s\n", cistern_version_string());
  check(cistern_allocator_create("auto", 0, NULL, &allocator));
  check(cistern_stream_create(allocator, &stream)); /* or a cudaStream_t */

  check(cistern_allocate(allocator, bytes, stream, &tensor));
  check(cistern_free(allocator, tensor)); /* reusable at once, in the stream's order */
  check(cistern_allocate(allocator, bytes, stream, &again));
  printf("the same memory again: %s\n", tensor == again ? "yes" : "no");
  check(cistern_free(allocator, again));

  check(cistern_pool_create(allocator, NULL, &pool));
  check(cistern_pool_allocate(pool, bytes, stream, &kept));
  printf("a pool has memory of its own: %s\n", kept != tensor ? "yes" : "no");
  check(cistern_free(allocator, kept));
  check(cistern_pool_destroy(pool));

  /* What goes wrong is said, and changes nothing. */
  if (cistern_block_size(allocator, kept, &(size_t){0}) == CISTERN_OK) return 1;
  printf("of a block that is free: %s\n", cistern_last_error());

  check(cistern_stream_destroy(allocator, stream));
  check(cistern_allocator_destroy(allocator));
  return tensor == again && kept != tensor ? 0 : 1;
}
