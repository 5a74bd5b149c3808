// Whether a captured graph calls NCCL. NCCL may register the memory that such calls use with the
// other ranks. PyTorch says nothing of it, so the driver is asked for the names of the kernels.
#include <cstddef>
#include <cstring>
#include <vector>

#include <dlfcn.h>

namespace {

// The driver's types, as far as they are used here: CUDA 12.0 and later.
using Graph = struct CUgraph_st*;
using Node = struct CUgraphNode_st*;
using Function = struct CUfunc_st*;
using Kernel = struct CUkern_st*;
enum CaptureStatus : int { kActive = 1 };
enum NodeKind : int { kKernelNode = 0, kGraphNode = 4 };
struct KernelNode {  ///< CUDA_KERNEL_NODE_PARAMS_v2
  Function function;
  unsigned grid[3], block[3], shared_bytes;
  void **parameters, **extra;
  Kernel kernel;  ///< if `function` is null
  void* context;
};

/// Its functions return 0 for success. PyTorch has loaded it.
class Driver {
 public:
  int (*capture)(void* stream, CaptureStatus*, void* id, Graph*, void*, void*);
  int (*nodes)(Graph, Node*, std::size_t*);
  int (*kind)(Node, NodeKind*);
  int (*child)(Node, Graph*);
  int (*kernel)(Node, KernelNode*);
  int (*function_name)(const char**, Function);
  int (*kernel_name)(const char**, Kernel);
  bool whole = true;  ///< has all of them

  Driver() {
    find(capture, "cuStreamGetCaptureInfo_v2");
    find(nodes, "cuGraphGetNodes");
    find(kind, "cuGraphNodeGetType");
    find(child, "cuGraphChildGraphNodeGetGraph");
    find(kernel, "cuGraphKernelNodeGetParams_v2");
    find(function_name, "cuFuncGetName");
    find(kernel_name, "cuKernelGetName");
  }

 private:
  template <class Call>
  void find(Call& call, const char* name) {
    static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    call = library == nullptr ? nullptr : reinterpret_cast<Call>(dlsym(library, name));
    whole = whole && call != nullptr;
  }
};

enum Answer { kNo = 0, kYes = 1, kUnknown = 2 };

class Search {
 public:
  Answer in(void* stream) const {
    CaptureStatus status{};
    Graph graph = nullptr;
    if (!driver_.whole || driver_.capture(stream, &status, nullptr, &graph, nullptr, nullptr) != 0)
      return kUnknown;
    return status == kActive ? in(graph) : kNo;
  }

 private:
  Answer in(Graph graph) const {
    std::size_t count = 0;
    if (driver_.nodes(graph, nullptr, &count) != 0) return kUnknown;
    std::vector<Node> nodes(count);
    if (count > 0 && driver_.nodes(graph, nodes.data(), &count) != 0) return kUnknown;
    Answer all = kNo;
    for (Node node : nodes) {
      const Answer one = in(node);
      if (one == kYes) return kYes;
      if (one == kUnknown) all = kUnknown;
    }
    return all;
  }

  Answer in(Node node) const {
    NodeKind kind{};
    if (driver_.kind(node, &kind) != 0) return kUnknown;
    if (kind == kKernelNode) return isNccls(node);
    if (kind != kGraphNode) return kNo;
    Graph child = nullptr;
    return driver_.child(node, &child) == 0 ? in(child) : kUnknown;
  }

  Answer isNccls(Node node) const {
    KernelNode of{};
    const char* name = nullptr;
    if (driver_.kernel(node, &of) != 0) return kUnknown;
    const int named = of.function != nullptr ? driver_.function_name(&name, of.function)
                                             : driver_.kernel_name(&name, of.kernel);
    if (named != 0 || name == nullptr) return kUnknown;
    return std::strstr(name, "nccl") != nullptr ? kYes : kNo;
  }

  const Driver driver_;
};

}  // namespace

/// Whether the graph that `stream` is being captured into calls NCCL so far: 0 no, 1 yes, 2 the
/// driver does not tell. 0 if the stream is not being captured.
extern "C" __attribute__((visibility("default"))) int cistern_torch_captures_collectives(
    void* stream) {
  return Search().in(stream);
}
