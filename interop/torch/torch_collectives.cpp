// Whether a captured graph calls NCCL. NCCL registers the memory that such calls use with the other
// ranks, for as long as the graph lives.
#include <cstring>
#include <vector>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

namespace {

// The driver's functions. It is loaded already: a stream is being captured.
struct Driver {
  template <class Function>
  static Function find(const char* name) {
    static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
  }

  using Params = CUDA_KERNEL_NODE_PARAMS_v2;
  decltype(&cuGraphGetNodes) nodes = find<decltype(nodes)>("cuGraphGetNodes");
  decltype(&cuGraphNodeGetType) type = find<decltype(type)>("cuGraphNodeGetType");
  decltype(&cuGraphChildGraphNodeGetGraph) child =
      find<decltype(child)>("cuGraphChildGraphNodeGetGraph");
  CUresult (*params)(CUgraphNode,
                     Params*) = find<decltype(params)>("cuGraphKernelNodeGetParams_v2");
  CUresult (*function_name)(const char**,
                            CUfunction) = find<decltype(function_name)>("cuFuncGetName");
  CUresult (*kernel_name)(const char**, CUkernel) = find<decltype(kernel_name)>("cuKernelGetName");

  bool whole() const { return nodes && type && child && params && function_name && kernel_name; }
};

enum Answer { kNo = 0, kYes = 1, kUnknown = 2 };

class Search {
 public:
  Answer in(CUgraph graph) const {
    std::size_t count = 0;
    if (!driver_.whole() || driver_.nodes(graph, nullptr, &count) != CUDA_SUCCESS) return kUnknown;
    std::vector<CUgraphNode> nodes(count);
    if (count > 0 && driver_.nodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return kUnknown;
    Answer all = kNo;
    for (const CUgraphNode node : nodes) {
      const Answer one = in(node);
      if (one == kYes) return kYes;
      if (one == kUnknown) all = kUnknown;
    }
    return all;
  }

 private:
  Answer in(CUgraphNode node) const {
    CUgraphNodeType type{};
    if (driver_.type(node, &type) != CUDA_SUCCESS) return kUnknown;
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) return isNccls(node);
    if (type != CU_GRAPH_NODE_TYPE_GRAPH) return kNo;
    CUgraph child = nullptr;
    return driver_.child(node, &child) == CUDA_SUCCESS ? in(child) : kUnknown;
  }

  Answer isNccls(CUgraphNode node) const {
    Driver::Params params{};
    const char* name = nullptr;
    if (driver_.params(node, &params) != CUDA_SUCCESS) return kUnknown;
    const CUresult named = params.func != nullptr ? driver_.function_name(&name, params.func)
                                                  : driver_.kernel_name(&name, params.kern);
    if (named != CUDA_SUCCESS || name == nullptr) return kUnknown;
    return std::strstr(name, "nccl") != nullptr ? kYes : kNo;
  }

  const Driver driver_;
};

Answer answerFor(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
#if CUDART_VERSION >= 13000
  const cudaError_t error =
      cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, nullptr, nullptr, nullptr);
#else
  const cudaError_t error =
      cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, &graph, nullptr, nullptr);
#endif
  if (error == cudaSuccess && status != cudaStreamCaptureStatusActive) return kNo;
  return error == cudaSuccess && graph != nullptr ? Search().in(graph) : kUnknown;
}

}  // namespace

/// Whether the graph that `stream` is being captured into calls NCCL so far: 0 no, 1 yes, 2 the
/// driver does not tell. 0 if the stream is not being captured.
extern "C" __attribute__((visibility("default"))) int cistern_torch_captures_collectives(
    void* stream) {
  return answerFor(static_cast<cudaStream_t>(stream));
}
