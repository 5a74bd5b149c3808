// HIP's functions that submit work, of those that this build knows: up to HIP 7.2.
//
// X(symbol, suffix): the symbol, and the suffix that the spelling for per-thread default streams
// adds to it. Which stream the work goes to is seen by the arguments (../submission.hpp).
// tests/preload/hip_names_test.py holds the list against the header.
#pragma once

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

#define CISTERN_SUBMITTING_FUNCTIONS(X)                                                                \
  X(hipDrvMemcpy2DUnaligned, )                                                                         \
  X(hipDrvMemcpy3D, )                                                                                  \
  X(hipDrvMemcpy3DAsync, )                                                                             \
  X(hipExtLaunchKernel, )                                                                              \
  X(hipExtModuleLaunchKernel, )                                                                        \
  X(hipGraphLaunch, )                                                                                  \
  X(hipGraphLaunch, _spt)                                                                              \
  X(hipGraphUpload, )                                                                                  \
  X(hipGraphicsMapResources, )                                                                         \
  X(hipGraphicsUnmapResources, )                                                                       \
  X(hipLaunchCooperativeKernel, )                                                                      \
  X(hipLaunchCooperativeKernel, _spt)                                                                  \
  X(hipLaunchHostFunc, )                                                                               \
  X(hipLaunchHostFunc, _spt)                                                                           \
  X(hipLaunchKernel, )                                                                                 \
  X(hipLaunchKernel, _spt)                                                                             \
  X(hipMemMapArrayAsync, )                                                                             \
  X(hipMemPrefetchAsync, )                                                                             \
  X(hipMemcpy, )                                                                                       \
  X(hipMemcpy, _spt)                                                                                   \
  X(hipMemcpy2D, )                                                                                     \
  X(hipMemcpy2D, _spt)                                                                                 \
  X(hipMemcpy2DAsync, )                                                                                \
  X(hipMemcpy2DAsync, _spt)                                                                            \
  X(hipMemcpy2DFromArray, )                                                                            \
  X(hipMemcpy2DFromArray, _spt)                                                                        \
  X(hipMemcpy2DFromArrayAsync, )                                                                       \
  X(hipMemcpy2DFromArrayAsync, _spt)                                                                   \
  X(hipMemcpy2DToArray, )                                                                              \
  X(hipMemcpy2DToArray, _spt)                                                                          \
  X(hipMemcpy2DToArrayAsync, )                                                                         \
  X(hipMemcpy2DToArrayAsync, _spt)                                                                     \
  X(hipMemcpy3D, )                                                                                     \
  X(hipMemcpy3D, _spt)                                                                                 \
  X(hipMemcpy3DAsync, )                                                                                \
  X(hipMemcpy3DAsync, _spt)                                                                            \
  X(hipMemcpyAsync, )                                                                                  \
  X(hipMemcpyAsync, _spt)                                                                              \
  X(hipMemcpyAtoH, )                                                                                   \
  X(hipMemcpyDtoD, )                                                                                   \
  X(hipMemcpyDtoDAsync, )                                                                              \
  X(hipMemcpyDtoH, )                                                                                   \
  X(hipMemcpyDtoHAsync, )                                                                              \
  X(hipMemcpyFromArray, )                                                                              \
  X(hipMemcpyFromArray, _spt)                                                                          \
  X(hipMemcpyFromSymbol, )                                                                             \
  X(hipMemcpyFromSymbol, _spt)                                                                         \
  X(hipMemcpyFromSymbolAsync, )                                                                        \
  X(hipMemcpyFromSymbolAsync, _spt)                                                                    \
  X(hipMemcpyHtoA, )                                                                                   \
  X(hipMemcpyHtoD, )                                                                                   \
  X(hipMemcpyHtoDAsync, )                                                                              \
  X(hipMemcpyParam2D, )                                                                                \
  X(hipMemcpyParam2DAsync, )                                                                           \
  X(hipMemcpyPeer, )                                                                                   \
  X(hipMemcpyPeerAsync, )                                                                              \
  X(hipMemcpyToArray, )                                                                                \
  X(hipMemcpyToSymbol, )                                                                               \
  X(hipMemcpyToSymbol, _spt)                                                                           \
  X(hipMemcpyToSymbolAsync, )                                                                          \
  X(hipMemcpyToSymbolAsync, _spt)                                                                      \
  X(hipMemcpyWithStream, )                                                                             \
  X(hipMemset, )                                                                                       \
  X(hipMemset, _spt)                                                                                   \
  X(hipMemset2D, )                                                                                     \
  X(hipMemset2D, _spt)                                                                                 \
  X(hipMemset2DAsync, )                                                                                \
  X(hipMemset2DAsync, _spt)                                                                            \
  X(hipMemset3D, )                                                                                     \
  X(hipMemset3D, _spt)                                                                                 \
  X(hipMemset3DAsync, )                                                                                \
  X(hipMemset3DAsync, _spt)                                                                            \
  X(hipMemsetAsync, )                                                                                  \
  X(hipMemsetAsync, _spt)                                                                              \
  X(hipMemsetD16, )                                                                                    \
  X(hipMemsetD16Async, )                                                                               \
  X(hipMemsetD32, )                                                                                    \
  X(hipMemsetD32Async, )                                                                               \
  X(hipMemsetD8, )                                                                                     \
  X(hipMemsetD8Async, )                                                                                \
  X(hipModuleLaunchCooperativeKernel, )                                                                \
  X(hipModuleLaunchKernel, )                                                                           \
  X(hipSignalExternalSemaphoresAsync, )                                                                \
  X(hipStreamAddCallback, )                                                                            \
  X(hipStreamAddCallback, _spt)                                                                        \
  X(hipStreamAttachMemAsync, )                                                                         \
  X(hipStreamWaitValue32, )                                                                            \
  X(hipStreamWaitValue64, )                                                                            \
  X(hipStreamWriteValue32, )                                                                           \
  X(hipStreamWriteValue64, )                                                                           \
  X(hipWaitExternalSemaphoresAsync, )                                                                  \
  X(_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j, ) \
  X(_Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_, )
