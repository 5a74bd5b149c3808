/* The least that a C program does with Cistern, on a machine without a GPU. */
#include <cistern/cistern.h>
#include <stdio.h>

int main(void) {
  cistern_allocator_t allocator;
  void* block = NULL;
  if (cistern_version() != CISTERN_VERSION) return 2;
  if (cistern_allocator_create("sim", 0, NULL, &allocator) != CISTERN_OK ||
      cistern_allocate(allocator, 1 << 20, NULL, &block) != CISTERN_OK || block == NULL ||
      cistern_free(allocator, block) != CISTERN_OK ||
      cistern_allocator_destroy(allocator) != CISTERN_OK) {
    fprintf(stderr, "%s\n", cistern_last_error());
    return 1;
  }
  printf("Cistern %s\n", cistern_version_string());
  return 0;
}
