// PyTorch's allocator, from the library that bench/peers/torch makes. With
// PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync it captures through the driver's memory nodes.
#include <cstdlib>
#include <string_view>

#include <dlfcn.h>
#include <fmt/format.h>

#include "bench/capture/capture_peer.hpp"
#include "bench/capture/graph_memory.hpp"
#include "bench/capture/plain_graph.hpp"
#include "bench/peers/torch/abi.hpp"

namespace cistern::bench {
namespace {

struct Functions {
  decltype(&cisternTorchOpen) open = nullptr;
  decltype(&cisternTorchAllocate) allocate = nullptr;
  decltype(&cisternTorchFree) free = nullptr;
  decltype(&cisternTorchBeginCapture) begin = nullptr;
  decltype(&cisternTorchEndCapture) end = nullptr;
  decltype(&cisternTorchReleaseCapture) release = nullptr;
  decltype(&cisternTorchReservedPeak) peak = nullptr;
};

bool throughDriver() {
  const char* conf = std::getenv("PYTORCH_CUDA_ALLOC_CONF");
  return conf && std::string_view(conf).find("cudaMallocAsync") != std::string_view::npos;
}

class TorchCapture final : public CapturePeer {
 public:
  TorchCapture(Device& device, Functions functions)
      : device_(device), torch_(functions), graph_(device) {}

  std::string name() const override {
    return throughDriver() ? "PyTorch, driver's memory nodes" : "PyTorch, private pool";
  }
  void begin(Stream origin) override {
    torch_.begin();
    graph_.begin(origin);
  }
  void* allocate(std::size_t bytes, Stream stream) override {
    void* block = torch_.allocate(bytes, reinterpret_cast<void*>(stream.raw));
    if (block == nullptr) throw Error("PyTorch has no memory");
    return block;
  }
  void free(void* block, Stream) override { torch_.free(block); }
  void end() override {
    graph_.end();
    torch_.end();
  }
  void replay(Stream stream) override { graph_.replay(stream); }
  std::uint64_t reserved() override {
    return throughDriver() ? graphMemoryPeak(device_.ordinal()) : torch_.peak();
  }
  void drop() override {
    graph_.drop();
    torch_.release();
    (void)torch_.peak();
    forgetGraphMemory(device_.ordinal());
  }

 private:
  Device& device_;
  Functions torch_;
  PlainGraph graph_;
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

std::unique_ptr<CapturePeer> torchCapturePeer(Device& device) {
  void* library = ::dlopen("libcistern_peer_torch.so", RTLD_NOW | RTLD_LOCAL);
  Functions torch;
  const bool found = library && find(library, "cisternTorchOpen", torch.open) &&
                     find(library, "cisternTorchAllocate", torch.allocate) &&
                     find(library, "cisternTorchFree", torch.free) &&
                     find(library, "cisternTorchBeginCapture", torch.begin) &&
                     find(library, "cisternTorchEndCapture", torch.end) &&
                     find(library, "cisternTorchReleaseCapture", torch.release) &&
                     find(library, "cisternTorchReservedPeak", torch.peak);
  const char* refused = found ? torch.open(device.ordinal()) : nullptr;
  if (found && refused == nullptr) return std::make_unique<TorchCapture>(device, torch);
  fmt::print("left out: PyTorch ({})\n", found ? refused : ::dlerror());
  return nullptr;
}

}  // namespace cistern::bench
