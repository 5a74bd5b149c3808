// cudaMallocAsync and its free for programs whose stream 0 is a stream of each thread.
#include "interop/preload/hooks/hook_streams.hpp"
#include "interop/preload/hooks/stream_ordered.hpp"

using namespace cistern::preload::cuda;

CISTERN_HOOK CUresult cuMemAllocAsync_ptsz(CUdeviceptr* out, size_t bytes, CUstream stream) {
  return serveAsync(out, bytes, streamMeant(stream, true), nullptr,
                    &Functions::cuMemAllocAsync_ptsz, out, bytes, stream);
}

CISTERN_HOOK CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* out, size_t bytes,
                                                   CUmemoryPool pool, CUstream stream) {
  return serveAsync(out, bytes, streamMeant(stream, true), pool,
                    &Functions::cuMemAllocFromPoolAsync_ptsz, out, bytes, pool, stream);
}

CISTERN_HOOK CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
  return serveFreeAsync(pointer, stream, true, &Functions::cuMemFreeAsync_ptsz);
}

CISTERN_HOOK CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
                                                       const CUgraphNode* dependencies,
                                                       const CUgraphEdgeData* edges, size_t count,
                                                       CUstreamCaptureMode mode) {
  return beginCapture(&Functions::cuStreamBeginCaptureToGraph_ptsz, stream, graph, dependencies,
                      edges, count, mode);
}
