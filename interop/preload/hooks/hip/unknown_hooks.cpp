// HIP's functions that submit work to streams that the types of their arguments do not show. They
// are functions of several devices, those whose stream was given before, and those that a HIP which
// this may be built with lacks. Each counts as work on every stream.
#define CISTERN_UNDECLARED_FUNCTIONS(X)          \
  X(hipDrvLaunchKernelEx)                        \
  X(hipExtLaunchMultiKernelMultiDevice)          \
  X(hipLaunchByPtr)                              \
  X(hipLaunchCooperativeKernelMultiDevice)       \
  X(hipLaunchKernelExC)                          \
  X(hipMemPrefetchAsync_v2)                      \
  X(hipMemPrefetchBatchAsync)                    \
  X(hipMemcpy2DArrayToArray)                     \
  X(hipMemcpy3DBatchAsync)                       \
  X(hipMemcpy3DPeer)                             \
  X(hipMemcpy3DPeerAsync)                        \
  X(hipMemcpyAtoA)                               \
  X(hipMemcpyAtoD)                               \
  X(hipMemcpyAtoHAsync)                          \
  X(hipMemcpyBatchAsync)                         \
  X(hipMemcpyDtoA)                               \
  X(hipMemcpyHtoAAsync)                          \
  X(hipMemsetD2D16)                              \
  X(hipMemsetD2D16Async)                         \
  X(hipMemsetD2D32)                              \
  X(hipMemsetD2D32Async)                         \
  X(hipMemsetD2D8)                               \
  X(hipMemsetD2D8Async)                          \
  X(hipModuleLaunchCooperativeKernelMultiDevice) \
  X(hipStreamBatchMemOp)

#include "interop/preload/hooks/unknown.hpp"
