// PyTorch's native allocator, from a library of its own that need not be there (torch/abi.hpp).
#include <utility>

#include <dlfcn.h>

#include "bench/peers/roster.hpp"
#include "bench/peers/torch/abi.hpp"

namespace cistern::bench {
namespace {

constexpr const char* kLibrary = "libcistern_peer_torch.so";

struct Functions {
  decltype(&cisternTorchOpen) open = nullptr;
  decltype(&cisternTorchAllocate) allocate = nullptr;
  decltype(&cisternTorchFree) free = nullptr;
  decltype(&cisternTorchEmpty) empty = nullptr;
};

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
}

Functions functionsOf(void* library) {
  Functions functions;
  find(library, "cisternTorchOpen", functions.open);
  find(library, "cisternTorchAllocate", functions.allocate);
  find(library, "cisternTorchFree", functions.free);
  find(library, "cisternTorchEmpty", functions.empty);
  return functions;
}

class TorchPeer final : public Peer {
 public:
  TorchPeer(Functions functions, std::shared_ptr<BenchDevice> device)
      : functions_(functions), device_(std::move(device)) {}
  // The next peer needs the memory.
  ~TorchPeer() override { functions_.empty(); }

  void* allocate(std::size_t bytes, Stream stream) override {
    return functions_.allocate(bytes, reinterpret_cast<void*>(stream.raw));
  }
  void free(void* block, Stream /*stream*/) override { functions_.free(block); }
  Stream stream(std::size_t index) override { return device_->stream(index); }

 private:
  Functions functions_;
  std::shared_ptr<BenchDevice> device_;
};

}  // namespace

void addTorch(Roster& roster, const std::shared_ptr<BenchDevice>& device) {
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    roster.left_out.push_back(std::string("torch: ") + ::dlerror());
    return;
  }
  const Functions functions = functionsOf(library);
  if (const char* error = functions.open(device->device().ordinal())) {
    roster.left_out.push_back(std::string("torch: ") + error);
    return;
  }
  roster.peers.push_back(
      {.name = "torch", .room = {.bytes = device->roomBytes()}, .open = [functions, device] {
         return std::make_unique<TorchPeer>(functions, device);
       }});
}

}  // namespace cistern::bench
