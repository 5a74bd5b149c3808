// cudaMalloc and cudaFree: no cache at all.
#include <utility>

#include "bench/peers/cuda/cuda_peers.hpp"
#include "bench/peers/cuda/handles.cuh"

namespace cistern::bench {
namespace {

class CudaMallocPeer final : public Peer {
 public:
  explicit CudaMallocPeer(std::shared_ptr<BenchDevice> device) : device_(std::move(device)) {}

  void* allocate(std::size_t bytes, Stream /*stream*/) override {
    void* block = nullptr;
    return blockOrNull(cudaMalloc(&block, bytes), block);
  }
  void free(void* block, Stream /*stream*/) override { require(cudaFree(block), "cudaFree"); }
  Stream stream(std::size_t index) override { return device_->stream(index); }

 private:
  std::shared_ptr<BenchDevice> device_;
};

}  // namespace

std::unique_ptr<Peer> openCudaMalloc(std::shared_ptr<BenchDevice> device) {
  return std::make_unique<CudaMallocPeer>(std::move(device));
}

}  // namespace cistern::bench
