"""Functions that change what a later call means, for names_test.py and hip_names_test.py.

Cistern answers some calls in the driver's place, and so must know what the driver would have known: which context and
which pool are current, which streams and captures there are, who may use the memory. A function that changes that is
seen by a hook; or the driver is asked anew each time for what it has changed. Every other function that is passed on
unseen stands in NOTHING, by name: somebody has looked at it. A function of a newer header is in none of these."""

import re

# These only answer.
ANSWERS = re.compile(r"Get|Query|Can[A-Z]|IsCapturing|IsLoaded|Occupancy|Name$|Enumerate")


# ---- CUDA

CUDA_SEEN = set("""
    cuCtxCreate cuCtxDestroy cuCtxEnablePeerAccess cuCtxFromGreenCtx cuCtxSynchronize cuDevicePrimaryCtxRelease
    cuDevicePrimaryCtxReset cuDevicePrimaryCtxRetain cuDeviceSetMemPool cuGreenCtxStreamCreate cuMemPoolSetAccess
    cuMemPoolSetAttribute cuMemPoolTrimTo cuMemSetMemPool cuStreamBeginCapture cuStreamBeginCaptureToGraph cuStreamCreate cuStreamCreateWithPriority
    cuStreamDestroy cuStreamEndCapture cuStreamSynchronize""".split())
CUDA_ASKED = set("""
    cuCtxPopCurrent cuCtxPushCurrent cuCtxSetCurrent cuMemPoolDestroy cuThreadExchangeStreamCaptureMode""".split())
CUDA_NOTHING = set("""
    cuArrayDestroy cuCheckpointProcessCheckpoint cuCheckpointProcessLock cuCheckpointProcessRestore
    cuCheckpointProcessUnlock cuCoredumpSetAttribute cuCoredumpSetAttributeGlobal cuCtxAttach cuCtxDetach
    cuCtxDisablePeerAccess cuCtxRecordEvent cuCtxResetPersistingL2Cache cuCtxSetCacheConfig cuCtxSetFlags
    cuCtxSetLimit cuCtxSetSharedMemConfig cuCtxWaitEvent cuDestroyExternalMemory cuDestroyExternalSemaphore
    cuDevResourceGenerateDesc cuDevSmResourceSplitByCount cuDeviceComputeCapability cuDeviceGraphMemTrim
    cuDevicePrimaryCtxSetFlags cuDeviceRegisterAsyncNotification cuDeviceSetGraphMemAttribute cuDeviceTotalMem
    cuDeviceUnregisterAsyncNotification cuEventCreate cuEventDestroy cuEventElapsedTime cuEventRecord
    cuEventRecordWithFlags cuEventSynchronize cuFlushGPUDirectRDMAWrites cuFuncLoad cuFuncSetAttribute
    cuFuncSetBlockShape cuFuncSetCacheConfig cuFuncSetSharedMemConfig cuFuncSetSharedSize cuGLCtxCreate cuGLInit
    cuGLRegisterBufferObject cuGLSetBufferObjectMapFlags cuGLUnregisterBufferObject cuGraphAddBatchMemOpNode
    cuGraphAddChildGraphNode cuGraphAddDependencies cuGraphAddEmptyNode cuGraphAddEventRecordNode
    cuGraphAddEventWaitNode cuGraphAddExternalSemaphoresSignalNode cuGraphAddExternalSemaphoresWaitNode
    cuGraphAddHostNode cuGraphAddKernelNode cuGraphAddMemAllocNode cuGraphAddMemFreeNode cuGraphAddMemcpyNode
    cuGraphAddMemsetNode cuGraphAddNode cuGraphBatchMemOpNodeSetParams cuGraphClone cuGraphConditionalHandleCreate
    cuGraphCreate cuGraphDebugDotPrint cuGraphDestroy cuGraphDestroyNode cuGraphEventRecordNodeSetEvent
    cuGraphEventWaitNodeSetEvent cuGraphExecBatchMemOpNodeSetParams cuGraphExecChildGraphNodeSetParams
    cuGraphExecDestroy cuGraphExecEventRecordNodeSetEvent cuGraphExecEventWaitNodeSetEvent
    cuGraphExecExternalSemaphoresSignalNodeSetParams cuGraphExecExternalSemaphoresWaitNodeSetParams
    cuGraphExecHostNodeSetParams cuGraphExecKernelNodeSetParams cuGraphExecMemcpyNodeSetParams
    cuGraphExecMemsetNodeSetParams cuGraphExecNodeSetParams cuGraphExecUpdate
    cuGraphExternalSemaphoresSignalNodeSetParams cuGraphExternalSemaphoresWaitNodeSetParams cuGraphHostNodeSetParams
    cuGraphInstantiate cuGraphInstantiateWithFlags cuGraphInstantiateWithParams cuGraphKernelNodeCopyAttributes
    cuGraphKernelNodeSetAttribute cuGraphKernelNodeSetParams cuGraphMemcpyNodeSetParams cuGraphMemsetNodeSetParams
    cuGraphNodeFindInClone cuGraphNodeSetEnabled cuGraphNodeSetParams cuGraphReleaseUserObject
    cuGraphRemoveDependencies cuGraphRetainUserObject cuGraphicsGLRegisterBuffer cuGraphicsGLRegisterImage
    cuGraphicsResourceSetMapFlags cuGraphicsUnregisterResource cuGreenCtxCreate cuGreenCtxDestroy
    cuGreenCtxRecordEvent cuGreenCtxWaitEvent cuImportExternalMemory cuImportExternalSemaphore cuInit
    cuIpcOpenEventHandle cuKernelSetAttribute cuKernelSetCacheConfig cuLibraryLoadData cuLibraryLoadFromFile
    cuLibraryUnload cuLinkAddData cuLinkAddFile cuLinkComplete cuLinkCreate cuLinkDestroy cuLogsCurrent
    cuLogsDumpToFile cuLogsDumpToMemory cuLogsRegisterCallback cuLogsUnregisterCallback cuMemAddressFree
    cuMemAddressReserve cuMemAdvise cuMemAllocHost cuMemExportToShareableHandle cuMemFreeHost cuMemHostAlloc
    cuMemHostRegister cuMemHostUnregister cuMemImportFromShareableHandle cuMemMap cuMemPoolCreate
    cuMemPoolExportPointer cuMemPoolExportToShareableHandle cuMemPoolImportFromShareableHandle
    cuMemPoolImportPointer cuMemRelease cuMemSetAccess cuMemUnmap
    cuMipmappedArrayDestroy cuModuleLoad cuModuleLoadData cuModuleLoadDataEx cuModuleLoadFatBinary cuModuleUnload
    cuMulticastAddDevice cuMulticastBindAddr cuMulticastBindMem cuMulticastCreate cuMulticastUnbind cuParamSetSize
    cuParamSetTexRef cuParamSetf cuParamSeti cuParamSetv cuPointerSetAttribute cuProfilerInitialize cuProfilerStart
    cuProfilerStop cuStreamCopyAttributes cuStreamSetAttribute cuStreamUpdateCaptureDependencies cuStreamWaitEvent
    cuSurfObjectCreate cuSurfObjectDestroy cuSurfRefSetArray cuTensorMapEncodeIm2col cuTensorMapEncodeIm2colWide
    cuTensorMapEncodeTiled cuTensorMapReplaceAddress cuTexObjectCreate cuTexObjectDestroy cuTexRefCreate
    cuTexRefDestroy cuTexRefSetAddress cuTexRefSetAddress2D cuTexRefSetAddressMode cuTexRefSetArray
    cuTexRefSetBorderColor cuTexRefSetFilterMode cuTexRefSetFlags cuTexRefSetFormat cuTexRefSetMaxAnisotropy
    cuTexRefSetMipmapFilterMode cuTexRefSetMipmapLevelBias cuTexRefSetMipmapLevelClamp cuTexRefSetMipmappedArray
    cuUserObjectCreate cuUserObjectRelease cuUserObjectRetain""".split())

# ---- HIP

HIP_SEEN = set("""
    hipCtxSynchronize hipDeviceEnablePeerAccess hipDevicePrimaryCtxReset hipDeviceReset hipDeviceSetMemPool
    hipDeviceSynchronize hipExtStreamCreateWithCUMask hipMemPoolSetAccess hipMemPoolSetAttribute hipMemPoolTrimTo
    hipMemSetMemPool hipStreamBeginCapture
    hipStreamBeginCaptureToGraph hipStreamCreate hipStreamCreateWithFlags hipStreamCreateWithPriority
    hipStreamDestroy hipStreamEndCapture hipStreamSynchronize""".split())
HIP_ASKED = set("""
    hipCtxPopCurrent hipCtxPushCurrent hipCtxSetCurrent hipMemPoolDestroy hipSetDevice
    hipThreadExchangeStreamCaptureMode""".split())
HIP_NOTHING = set("""
    hipArrayDestroy hipBindTexture hipBindTexture2D hipBindTextureToArray hipBindTextureToMipmappedArray
    hipChooseDevice hipChooseDeviceR0000 hipChooseDeviceR0600 hipConfigureCall hipCreateChannelDesc
    hipCreateSurfaceObject hipCreateTextureObject hipCtxCreate hipCtxDestroy hipCtxDisablePeerAccess
    hipCtxEnablePeerAccess hipCtxSetCacheConfig hipCtxSetSharedMemConfig hipDestroyExternalMemory
    hipDestroyExternalSemaphore hipDestroySurfaceObject hipDestroyTextureObject hipDeviceComputeCapability
    hipDeviceDisablePeerAccess hipDeviceGraphMemTrim hipDevicePrimaryCtxRelease hipDevicePrimaryCtxRetain
    hipDevicePrimaryCtxSetFlags hipDeviceSetCacheConfig hipDeviceSetGraphMemAttribute hipDeviceSetLimit
    hipDeviceSetSharedMemConfig hipDeviceTotalMem hipDrvGraphAddMemFreeNode hipDrvGraphAddMemcpyNode
    hipDrvGraphAddMemsetNode hipDrvGraphExecMemcpyNodeSetParams hipDrvGraphExecMemsetNodeSetParams
    hipDrvGraphMemcpyNodeSetParams hipEnableActivityCallback hipEventCreate hipEventCreateWithFlags hipEventDestroy
    hipEventElapsedTime hipEventRecord hipEventRecordWithFlags hipEventSynchronize hipExtDisableLogging
    hipExtEnableLogging hipExtSetLoggingParams hipFreeArray hipFreeHost hipFreeMipmappedArray hipFuncSetAttribute
    hipFuncSetCacheConfig hipFuncSetSharedMemConfig hipGraphAddBatchMemOpNode hipGraphAddChildGraphNode
    hipGraphAddDependencies hipGraphAddEmptyNode hipGraphAddEventRecordNode hipGraphAddEventWaitNode
    hipGraphAddExternalSemaphoresSignalNode hipGraphAddExternalSemaphoresWaitNode hipGraphAddHostNode
    hipGraphAddKernelNode hipGraphAddMemAllocNode hipGraphAddMemFreeNode hipGraphAddMemcpyNode
    hipGraphAddMemcpyNode1D hipGraphAddMemcpyNodeFromSymbol hipGraphAddMemcpyNodeToSymbol hipGraphAddMemsetNode
    hipGraphAddNode hipGraphBatchMemOpNodeSetParams hipGraphClone hipGraphCreate hipGraphDebugDotPrint
    hipGraphDestroy hipGraphDestroyNode hipGraphEventRecordNodeSetEvent hipGraphEventWaitNodeSetEvent
    hipGraphExecBatchMemOpNodeSetParams hipGraphExecChildGraphNodeSetParams hipGraphExecDestroy
    hipGraphExecEventRecordNodeSetEvent hipGraphExecEventWaitNodeSetEvent
    hipGraphExecExternalSemaphoresSignalNodeSetParams hipGraphExecExternalSemaphoresWaitNodeSetParams
    hipGraphExecHostNodeSetParams hipGraphExecKernelNodeSetParams hipGraphExecMemcpyNodeSetParams
    hipGraphExecMemcpyNodeSetParams1D hipGraphExecMemcpyNodeSetParamsFromSymbol
    hipGraphExecMemcpyNodeSetParamsToSymbol hipGraphExecMemsetNodeSetParams hipGraphExecNodeSetParams
    hipGraphExecUpdate hipGraphExternalSemaphoresSignalNodeSetParams hipGraphExternalSemaphoresWaitNodeSetParams
    hipGraphHostNodeSetParams hipGraphInstantiate hipGraphInstantiateWithFlags hipGraphInstantiateWithParams
    hipGraphKernelNodeCopyAttributes hipGraphKernelNodeSetAttribute hipGraphKernelNodeSetParams
    hipGraphMemcpyNodeSetParams hipGraphMemcpyNodeSetParams1D hipGraphMemcpyNodeSetParamsFromSymbol
    hipGraphMemcpyNodeSetParamsToSymbol hipGraphMemsetNodeSetParams hipGraphNodeFindInClone hipGraphNodeSetEnabled
    hipGraphNodeSetParams hipGraphReleaseUserObject hipGraphRemoveDependencies hipGraphRetainUserObject
    hipGraphicsGLRegisterBuffer hipGraphicsGLRegisterImage hipGraphicsUnregisterResource hipHostAlloc hipHostFree
    hipHostMalloc hipHostRegister hipHostUnregister hipImportExternalMemory hipImportExternalSemaphore hipInit
    hipInitActivityCallback hipIpcCloseMemHandle hipIpcOpenEventHandle hipIpcOpenMemHandle hipKernelNameRef
    hipKernelNameRefByPtr hipKernelSetAttribute hipLibraryLoadData hipLibraryLoadFromFile hipLibraryUnload
    hipLinkAddData hipLinkAddFile hipLinkComplete hipLinkCreate hipLinkDestroy hipMallocHost hipMemAddressFree
    hipMemAddressReserve hipMemAdvise hipMemAdvise_v2 hipMemAllocHost hipMemExportToShareableHandle
    hipMemImportFromShareableHandle hipMemMap hipMemPoolCreate hipMemPoolExportPointer
    hipMemPoolExportToShareableHandle hipMemPoolImportFromShareableHandle hipMemPoolImportPointer
    hipMemRelease hipMemSetAccess hipMemUnmap hipMipmappedArrayDestroy
    hipModuleLoad hipModuleLoadData hipModuleLoadDataEx hipModuleLoadFatBinary hipModuleUnload
    hipPointerSetAttribute hipProfilerStart hipProfilerStop hipRegisterActivityCallback hipRegisterApiCallback
    hipRegisterTracerCallback hipRemoveActivityCallback hipRemoveApiCallback hipSetDeviceFlags hipSetValidDevices
    hipSetupArgument hipStreamCopyAttributes hipStreamSetAttribute hipStreamUpdateCaptureDependencies
    hipStreamWaitEvent hipTexObjectCreate hipTexObjectDestroy hipTexRefSetAddress hipTexRefSetAddress2D
    hipTexRefSetAddressMode hipTexRefSetArray hipTexRefSetBorderColor hipTexRefSetFilterMode hipTexRefSetFlags
    hipTexRefSetFormat hipTexRefSetMaxAnisotropy hipTexRefSetMipmapFilterMode hipTexRefSetMipmapLevelBias
    hipTexRefSetMipmapLevelClamp hipTexRefSetMipmappedArray hipUnbindTexture hipUserObjectCreate
    hipUserObjectRelease hipUserObjectRetain""".split())


def unlooked_at(harmless, hooked, seen, asked, nothing):
    """Functions that are passed on unseen, and that nobody has looked at; those that should have a hook, and have none;
    and those that are listed, and are no function that is passed on."""
    unseen = {name for name in harmless - hooked if not ANSWERS.search(name)}
    return sorted(unseen - asked - nothing), sorted(seen - hooked), sorted((asked | nothing) - unseen)
