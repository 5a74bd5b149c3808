// cudaMallocAsync from the device's default pool, told to keep what it has: as it comes, the pool
// gives everything back at each synchronisation.
#include <cstdint>
#include <limits>
#include <utility>

#include "bench/peers/cuda/cuda_peers.hpp"
#include "bench/peers/cuda/handles.cuh"

namespace cistern::bench {
namespace {

class CudaMallocAsyncPeer final : public Peer {
 public:
  explicit CudaMallocAsyncPeer(std::shared_ptr<BenchDevice> device) : device_(std::move(device)) {
    require(cudaDeviceGetDefaultMemPool(&pool_, device_->device().ordinal()), "the default pool");
    std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
    require(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep),
            "the pool's release threshold");
  }
  // The next peer needs the memory.
  ~CudaMallocAsyncPeer() override {
    (void)cudaDeviceSynchronize();
    (void)cudaMemPoolTrimTo(pool_, 0);
  }

  void* allocate(std::size_t bytes, Stream stream) override {
    void* block = nullptr;
    return blockOrNull(cudaMallocAsync(&block, bytes, handleOf(stream)), block);
  }
  void free(void* block, Stream stream) override {
    require(cudaFreeAsync(block, handleOf(stream)), "cudaFreeAsync");
  }
  Stream stream(std::size_t index) override { return device_->stream(index); }

 private:
  std::shared_ptr<BenchDevice> device_;
  cudaMemPool_t pool_ = nullptr;
};

}  // namespace

std::unique_ptr<Peer> openCudaMallocAsync(std::shared_ptr<BenchDevice> device) {
  return std::make_unique<CudaMallocAsyncPeer>(std::move(device));
}

}  // namespace cistern::bench
