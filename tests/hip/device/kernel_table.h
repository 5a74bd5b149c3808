/* Which function of the host stands for which kernel. A program that runs on the played GPU says so
 * for its kernels, by their names in the code object:
 *
 *   PlayedKernelFunction* add = dlsym(RTLD_DEFAULT, "playedKernel");
 *   if (add) add("scale", scaleOnTheHost, NULL);
 *
 * The function is called once for a whole grid, by the played GPU's thread, when the kernel's time
 * is over. It may make no call of HIP's. */
#ifndef PLAYED_KERNEL_TABLE_H
#define PLAYED_KERNEL_TABLE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct PlayedLaunch PlayedLaunch;
struct PlayedLaunch {
  const char* arguments; /* the kernel's, each at its place in the code object's layout */
  uint32_t grid[3];      /* in work items */
  uint32_t group[3];
  /* [address, address + bytes) of the GPU's memory, to be read or written. Does not return if the
   * GPU has not mapped it: that is a page fault, which ends the process. */
  void* (*at)(const PlayedLaunch* launch, uint64_t address, uint64_t bytes, int writes);
  void* gpu; /* the played GPU's own */
};

typedef void PlayedKernelRun(const PlayedLaunch* launch);
/* How long the kernel is busy, in nanoseconds. */
typedef uint64_t PlayedKernelTime(const PlayedLaunch* launch);

/* `time` may be null. A name that is there already is replaced. */
typedef void PlayedKernelFunction(const char* name, PlayedKernelRun* run, PlayedKernelTime* time);
PlayedKernelFunction playedKernel;

#ifdef __cplusplus
}
#endif

#endif
