// Functions of the driver's that submit work, and whose types the header does not declare. They are
// versions before the present one, functions that share memory with other interfaces, and functions
// that launch on several devices or were left behind. For programs that are linked to them.
#define CISTERN_UNDECLARED_FUNCTIONS(X)   \
  X(cuLaunch)                             \
  X(cuLaunchGrid)                         \
  X(cuLaunchGridAsync)                    \
  X(cuLaunchCooperativeKernelMultiDevice) \
  X(cuMemcpyHtoD)                         \
  X(cuMemcpyDtoH)                         \
  X(cuMemcpyDtoD)                         \
  X(cuMemcpyDtoA)                         \
  X(cuMemcpyAtoD)                         \
  X(cuMemcpyHtoA)                         \
  X(cuMemcpyAtoH)                         \
  X(cuMemcpyAtoA)                         \
  X(cuMemcpyHtoAAsync)                    \
  X(cuMemcpyAtoHAsync)                    \
  X(cuMemcpy2D)                           \
  X(cuMemcpy2DUnaligned)                  \
  X(cuMemcpy3D)                           \
  X(cuMemcpyHtoDAsync)                    \
  X(cuMemcpyDtoHAsync)                    \
  X(cuMemcpyDtoDAsync)                    \
  X(cuMemcpy2DAsync)                      \
  X(cuMemcpy3DAsync)                      \
  X(cuMemsetD8)                           \
  X(cuMemsetD16)                          \
  X(cuMemsetD32)                          \
  X(cuMemsetD2D8)                         \
  X(cuMemsetD2D16)                        \
  X(cuMemsetD2D32)                        \
  X(cuMemPrefetchAsync)                   \
  X(cuMemPrefetchAsync_ptsz)              \
  X(cuMemcpyBatchAsync)                   \
  X(cuMemcpyBatchAsync_ptsz)              \
  X(cuMemcpy3DBatchAsync)                 \
  X(cuMemcpy3DBatchAsync_ptsz)            \
  X(cuStreamWaitValue32)                  \
  X(cuStreamWaitValue32_ptsz)             \
  X(cuStreamWaitValue64)                  \
  X(cuStreamWaitValue64_ptsz)             \
  X(cuStreamWriteValue32)                 \
  X(cuStreamWriteValue32_ptsz)            \
  X(cuStreamWriteValue64)                 \
  X(cuStreamWriteValue64_ptsz)            \
  X(cuStreamBatchMemOp)                   \
  X(cuStreamBatchMemOp_ptsz)              \
  X(cuGLMapBufferObject)                  \
  X(cuGLMapBufferObject_v2)               \
  X(cuGLMapBufferObject_v2_ptds)          \
  X(cuGLMapBufferObjectAsync)             \
  X(cuGLMapBufferObjectAsync_v2)          \
  X(cuGLMapBufferObjectAsync_v2_ptsz)     \
  X(cuGLUnmapBufferObject)                \
  X(cuGLUnmapBufferObjectAsync)           \
  X(cuEGLStreamConsumerAcquireFrame)      \
  X(cuEGLStreamConsumerReleaseFrame)      \
  X(cuEGLStreamProducerPresentFrame)      \
  X(cuEGLStreamProducerReturnFrame)

#include "interop/preload/hooks/unknown.hpp"
