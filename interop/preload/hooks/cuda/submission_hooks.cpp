// The driver's functions that submit work, of those that this build knows.
//
// X(symbol, suffix, name, version): `symbol` is the symbol in the header. `suffix` is added to it
// by the spelling for per-thread default streams (nothing: it is the other spelling). `name` and
// `version` are those to ask cuGetProcAddress for. Each function has both spellings: a row has the
// suffix of the second, and the version of each. The arguments show the stream of the work
// (../submission.hpp). A test, tests/preload/names_test.py, compares the list with the header.
#include "interop/preload/driver/driver.hpp"

#define CISTERN_PAIR(X, symbol, suffix, name, version, suffixed_version) \
  X(symbol, , name, version) X(symbol, suffix, name, suffixed_version)

#define CISTERN_SUBMITTING_FUNCTIONS(X)                                                          \
  CISTERN_PAIR(X, cuGraphLaunch, _ptsz, "cuGraphLaunch", 10000, 10000)                           \
  CISTERN_PAIR(X, cuGraphUpload, _ptsz, "cuGraphUpload", 11010, 11010)                           \
  CISTERN_PAIR(X, cuGraphicsMapResources, _ptsz, "cuGraphicsMapResources", 3000, 7000)           \
  CISTERN_PAIR(X, cuGraphicsUnmapResources, _ptsz, "cuGraphicsUnmapResources", 3000, 7000)       \
  CISTERN_PAIR(X, cuLaunchCooperativeKernel, _ptsz, "cuLaunchCooperativeKernel", 9000, 9000)     \
  CISTERN_PAIR(X, cuLaunchHostFunc, _ptsz, "cuLaunchHostFunc", 10000, 10000)                     \
  CISTERN_PAIR(X, cuLaunchKernel, _ptsz, "cuLaunchKernel", 4000, 7000)                           \
  CISTERN_PAIR(X, cuLaunchKernelEx, _ptsz, "cuLaunchKernelEx", 11060, 11060)                     \
  CISTERN_PAIR(X, cuMemBatchDecompressAsync, _ptsz, "cuMemBatchDecompressAsync", 12060, 12060)   \
  CISTERN_PAIR(X, cuMemDiscardAndPrefetchBatchAsync, _ptsz, "cuMemDiscardAndPrefetchBatchAsync", \
               13000, 13000)                                                                     \
  CISTERN_PAIR(X, cuMemDiscardBatchAsync, _ptsz, "cuMemDiscardBatchAsync", 13000, 13000)         \
  CISTERN_PAIR(X, cuMemMapArrayAsync, _ptsz, "cuMemMapArrayAsync", 11010, 11010)                 \
  CISTERN_PAIR(X, cuMemPrefetchAsync_v2, _ptsz, "cuMemPrefetchAsync", 12020, 12020)              \
  CISTERN_PAIR(X, cuMemPrefetchBatchAsync, _ptsz, "cuMemPrefetchBatchAsync", 13000, 13000)       \
  CISTERN_PAIR(X, cuMemcpy, _ptds, "cuMemcpy", 4000, 7000)                                       \
  CISTERN_PAIR(X, cuMemcpy2DAsync_v2, _ptsz, "cuMemcpy2DAsync", 3020, 7000)                      \
  CISTERN_PAIR(X, cuMemcpy2DUnaligned_v2, _ptds, "cuMemcpy2DUnaligned", 3020, 7000)              \
  CISTERN_PAIR(X, cuMemcpy2D_v2, _ptds, "cuMemcpy2D", 3020, 7000)                                \
  CISTERN_PAIR(X, cuMemcpy3DAsync_v2, _ptsz, "cuMemcpy3DAsync", 3020, 7000)                      \
  CISTERN_PAIR(X, cuMemcpy3DBatchAsync_v2, _ptsz, "cuMemcpy3DBatchAsync", 13000, 13000)          \
  CISTERN_PAIR(X, cuMemcpy3DPeer, _ptds, "cuMemcpy3DPeer", 4000, 7000)                           \
  CISTERN_PAIR(X, cuMemcpy3DPeerAsync, _ptsz, "cuMemcpy3DPeerAsync", 4000, 7000)                 \
  CISTERN_PAIR(X, cuMemcpy3D_v2, _ptds, "cuMemcpy3D", 3020, 7000)                                \
  CISTERN_PAIR(X, cuMemcpyAsync, _ptsz, "cuMemcpyAsync", 4000, 7000)                             \
  CISTERN_PAIR(X, cuMemcpyAtoA_v2, _ptds, "cuMemcpyAtoA", 3020, 7000)                            \
  CISTERN_PAIR(X, cuMemcpyAtoD_v2, _ptds, "cuMemcpyAtoD", 3020, 7000)                            \
  CISTERN_PAIR(X, cuMemcpyAtoHAsync_v2, _ptsz, "cuMemcpyAtoHAsync", 3020, 7000)                  \
  CISTERN_PAIR(X, cuMemcpyAtoH_v2, _ptds, "cuMemcpyAtoH", 3020, 7000)                            \
  CISTERN_PAIR(X, cuMemcpyBatchAsync_v2, _ptsz, "cuMemcpyBatchAsync", 13000, 13000)              \
  CISTERN_PAIR(X, cuMemcpyDtoA_v2, _ptds, "cuMemcpyDtoA", 3020, 7000)                            \
  CISTERN_PAIR(X, cuMemcpyDtoDAsync_v2, _ptsz, "cuMemcpyDtoDAsync", 3020, 7000)                  \
  CISTERN_PAIR(X, cuMemcpyDtoD_v2, _ptds, "cuMemcpyDtoD", 3020, 7000)                            \
  CISTERN_PAIR(X, cuMemcpyDtoHAsync_v2, _ptsz, "cuMemcpyDtoHAsync", 3020, 7000)                  \
  CISTERN_PAIR(X, cuMemcpyDtoH_v2, _ptds, "cuMemcpyDtoH", 3020, 7000)                            \
  CISTERN_PAIR(X, cuMemcpyHtoAAsync_v2, _ptsz, "cuMemcpyHtoAAsync", 3020, 7000)                  \
  CISTERN_PAIR(X, cuMemcpyHtoA_v2, _ptds, "cuMemcpyHtoA", 3020, 7000)                            \
  CISTERN_PAIR(X, cuMemcpyHtoDAsync_v2, _ptsz, "cuMemcpyHtoDAsync", 3020, 7000)                  \
  CISTERN_PAIR(X, cuMemcpyHtoD_v2, _ptds, "cuMemcpyHtoD", 3020, 7000)                            \
  CISTERN_PAIR(X, cuMemcpyPeer, _ptds, "cuMemcpyPeer", 4000, 7000)                               \
  CISTERN_PAIR(X, cuMemcpyPeerAsync, _ptsz, "cuMemcpyPeerAsync", 4000, 7000)                     \
  CISTERN_PAIR(X, cuMemsetD16Async, _ptsz, "cuMemsetD16Async", 3020, 7000)                       \
  CISTERN_PAIR(X, cuMemsetD16_v2, _ptds, "cuMemsetD16", 3020, 7000)                              \
  CISTERN_PAIR(X, cuMemsetD2D16Async, _ptsz, "cuMemsetD2D16Async", 3020, 7000)                   \
  CISTERN_PAIR(X, cuMemsetD2D16_v2, _ptds, "cuMemsetD2D16", 3020, 7000)                          \
  CISTERN_PAIR(X, cuMemsetD2D32Async, _ptsz, "cuMemsetD2D32Async", 3020, 7000)                   \
  CISTERN_PAIR(X, cuMemsetD2D32_v2, _ptds, "cuMemsetD2D32", 3020, 7000)                          \
  CISTERN_PAIR(X, cuMemsetD2D8Async, _ptsz, "cuMemsetD2D8Async", 3020, 7000)                     \
  CISTERN_PAIR(X, cuMemsetD2D8_v2, _ptds, "cuMemsetD2D8", 3020, 7000)                            \
  CISTERN_PAIR(X, cuMemsetD32Async, _ptsz, "cuMemsetD32Async", 3020, 7000)                       \
  CISTERN_PAIR(X, cuMemsetD32_v2, _ptds, "cuMemsetD32", 3020, 7000)                              \
  CISTERN_PAIR(X, cuMemsetD8Async, _ptsz, "cuMemsetD8Async", 3020, 7000)                         \
  CISTERN_PAIR(X, cuMemsetD8_v2, _ptds, "cuMemsetD8", 3020, 7000)                                \
  CISTERN_PAIR(X, cuSignalExternalSemaphoresAsync, _ptsz, "cuSignalExternalSemaphoresAsync",     \
               10000, 10000)                                                                     \
  CISTERN_PAIR(X, cuStreamAddCallback, _ptsz, "cuStreamAddCallback", 5000, 7000)                 \
  CISTERN_PAIR(X, cuStreamAttachMemAsync, _ptsz, "cuStreamAttachMemAsync", 6000, 7000)           \
  CISTERN_PAIR(X, cuStreamBatchMemOp_v2, _ptsz, "cuStreamBatchMemOp", 11070, 11070)              \
  CISTERN_PAIR(X, cuStreamWaitValue32_v2, _ptsz, "cuStreamWaitValue32", 11070, 11070)            \
  CISTERN_PAIR(X, cuStreamWaitValue64_v2, _ptsz, "cuStreamWaitValue64", 11070, 11070)            \
  CISTERN_PAIR(X, cuStreamWriteValue32_v2, _ptsz, "cuStreamWriteValue32", 11070, 11070)          \
  CISTERN_PAIR(X, cuStreamWriteValue64_v2, _ptsz, "cuStreamWriteValue64", 11070, 11070)          \
  CISTERN_PAIR(X, cuWaitExternalSemaphoresAsync, _ptsz, "cuWaitExternalSemaphoresAsync", 10000,  \
               10000)

namespace cistern::preload::cuda {
namespace {

CUstream streamIn(const CUlaunchConfig* config) {
  return config == nullptr ? nullptr : config->hStream;
}

}  // namespace
}  // namespace cistern::preload::cuda

#include "interop/preload/hooks/submission.hpp"
