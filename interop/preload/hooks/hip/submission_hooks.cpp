// HIP's functions that submit work, of those that this build knows: up to HIP 7.2.
//
// X(symbol, suffix): the symbol, and the suffix that the spelling for per-thread default streams
// adds to it. CISTERN_PAIR is a function with both spellings. Which stream the work goes to is seen
// by the arguments (../submission.hpp). tests/preload/hip_names_test.py holds the list against the
// header.
#include "interop/preload/driver/hip/functions.hpp"

namespace cistern::preload::hip {

// As in driver/hip/functions.hpp: types that the header cannot be asked for. The last two are what
// C++ makes of hipExtModuleLaunchKernel's name and of its older one.
hipError_t hipGraphUpload(hipGraphExec_t, hipStream_t);
hipError_t hipLaunchCooperativeKernel(const void*, dim3, dim3, void**, unsigned, hipStream_t);
hipError_t hipMemcpyFromSymbol(void*, const void*, std::size_t, std::size_t, hipMemcpyKind);
hipError_t hipMemcpyFromSymbolAsync(void*, const void*, std::size_t, std::size_t, hipMemcpyKind,
                                    hipStream_t);
hipError_t hipMemcpyToSymbol(const void*, const void*, std::size_t, std::size_t, hipMemcpyKind);
hipError_t hipMemcpyToSymbolAsync(const void*, const void*, std::size_t, std::size_t, hipMemcpyKind,
                                  hipStream_t);
hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t, unsigned, unsigned, unsigned, unsigned,
                                            unsigned, unsigned, unsigned, hipStream_t, void**);
hipError_t hipExtModuleLaunchKernel(hipFunction_t, std::uint32_t, std::uint32_t, std::uint32_t,
                                    std::uint32_t, std::uint32_t, std::uint32_t, std::size_t,
                                    hipStream_t, void**, void**, hipEvent_t, hipEvent_t,
                                    std::uint32_t);
hipError_t
_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j(
    hipFunction_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
    std::uint32_t, std::size_t, hipStream_t, void**, void**, hipEvent_t, hipEvent_t, std::uint32_t);
hipError_t
_Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_(
    hipFunction_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
    std::uint32_t, std::size_t, hipStream_t, void**, void**, hipEvent_t, hipEvent_t);

}  // namespace cistern::preload::hip

#define CISTERN_PAIR(X, symbol) X(symbol, ) X(symbol, _spt)

#define CISTERN_SUBMITTING_FUNCTIONS(X)                                                                \
  X(hipDrvMemcpy2DUnaligned, )                                                                         \
  X(hipDrvMemcpy3D, )                                                                                  \
  X(hipDrvMemcpy3DAsync, )                                                                             \
  X(hipExtLaunchKernel, )                                                                              \
  X(hipExtModuleLaunchKernel, )                                                                        \
  CISTERN_PAIR(X, hipGraphLaunch)                                                                      \
  X(hipGraphUpload, )                                                                                  \
  X(hipGraphicsMapResources, )                                                                         \
  X(hipGraphicsUnmapResources, )                                                                       \
  CISTERN_PAIR(X, hipLaunchCooperativeKernel)                                                          \
  CISTERN_PAIR(X, hipLaunchHostFunc)                                                                   \
  CISTERN_PAIR(X, hipLaunchKernel)                                                                     \
  X(hipMemMapArrayAsync, )                                                                             \
  X(hipMemPrefetchAsync, )                                                                             \
  CISTERN_PAIR(X, hipMemcpy)                                                                           \
  CISTERN_PAIR(X, hipMemcpy2D)                                                                         \
  CISTERN_PAIR(X, hipMemcpy2DAsync)                                                                    \
  CISTERN_PAIR(X, hipMemcpy2DFromArray)                                                                \
  CISTERN_PAIR(X, hipMemcpy2DFromArrayAsync)                                                           \
  CISTERN_PAIR(X, hipMemcpy2DToArray)                                                                  \
  CISTERN_PAIR(X, hipMemcpy2DToArrayAsync)                                                             \
  CISTERN_PAIR(X, hipMemcpy3D)                                                                         \
  CISTERN_PAIR(X, hipMemcpy3DAsync)                                                                    \
  CISTERN_PAIR(X, hipMemcpyAsync)                                                                      \
  X(hipMemcpyAtoH, )                                                                                   \
  X(hipMemcpyDtoD, )                                                                                   \
  X(hipMemcpyDtoDAsync, )                                                                              \
  X(hipMemcpyDtoH, )                                                                                   \
  X(hipMemcpyDtoHAsync, )                                                                              \
  CISTERN_PAIR(X, hipMemcpyFromArray)                                                                  \
  CISTERN_PAIR(X, hipMemcpyFromSymbol)                                                                 \
  CISTERN_PAIR(X, hipMemcpyFromSymbolAsync)                                                            \
  X(hipMemcpyHtoA, )                                                                                   \
  X(hipMemcpyHtoD, )                                                                                   \
  X(hipMemcpyHtoDAsync, )                                                                              \
  X(hipMemcpyParam2D, )                                                                                \
  X(hipMemcpyParam2DAsync, )                                                                           \
  X(hipMemcpyPeer, )                                                                                   \
  X(hipMemcpyPeerAsync, )                                                                              \
  X(hipMemcpyToArray, )                                                                                \
  CISTERN_PAIR(X, hipMemcpyToSymbol)                                                                   \
  CISTERN_PAIR(X, hipMemcpyToSymbolAsync)                                                              \
  X(hipMemcpyWithStream, )                                                                             \
  CISTERN_PAIR(X, hipMemset)                                                                           \
  CISTERN_PAIR(X, hipMemset2D)                                                                         \
  CISTERN_PAIR(X, hipMemset2DAsync)                                                                    \
  CISTERN_PAIR(X, hipMemset3D)                                                                         \
  CISTERN_PAIR(X, hipMemset3DAsync)                                                                    \
  CISTERN_PAIR(X, hipMemsetAsync)                                                                      \
  X(hipMemsetD16, )                                                                                    \
  X(hipMemsetD16Async, )                                                                               \
  X(hipMemsetD32, )                                                                                    \
  X(hipMemsetD32Async, )                                                                               \
  X(hipMemsetD8, )                                                                                     \
  X(hipMemsetD8Async, )                                                                                \
  X(hipModuleLaunchCooperativeKernel, )                                                                \
  X(hipModuleLaunchKernel, )                                                                           \
  X(hipSignalExternalSemaphoresAsync, )                                                                \
  CISTERN_PAIR(X, hipStreamAddCallback)                                                                \
  X(hipStreamAttachMemAsync, )                                                                         \
  X(hipStreamWaitValue32, )                                                                            \
  X(hipStreamWaitValue64, )                                                                            \
  X(hipStreamWriteValue32, )                                                                           \
  X(hipStreamWriteValue64, )                                                                           \
  X(hipWaitExternalSemaphoresAsync, )                                                                  \
  X(_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j, ) \
  X(_Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_, )

#include "interop/preload/hooks/submission.hpp"
