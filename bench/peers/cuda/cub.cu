// CUB's CachingDeviceAllocator with bins of powers of two from 512 B to 4 GiB and no bound on what
// it caches: its defaults cache nothing above 2 MiB.
#include <utility>

#include <cub/util_allocator.cuh>

#include "bench/peers/cuda/cuda_peers.hpp"
#include "bench/peers/cuda/handles.cuh"

namespace cistern::bench {
namespace {

constexpr unsigned kGrowth = 2;
constexpr unsigned kSmallestBin = 9;
constexpr unsigned kLargestBin = 32;

class CubPeer final : public Peer {
 public:
  explicit CubPeer(std::shared_ptr<BenchDevice> device) : device_(std::move(device)) {}

  void* allocate(std::size_t bytes, Stream stream) override {
    void* block = nullptr;
    return blockOrNull(allocator_.DeviceAllocate(&block, bytes, handleOf(stream)), block);
  }
  void free(void* block, Stream /*stream*/) override {
    require(allocator_.DeviceFree(block), "CachingDeviceAllocator::DeviceFree");
  }
  Stream stream(std::size_t index) override { return device_->stream(index); }

 private:
  std::shared_ptr<BenchDevice> device_;
  cub::CachingDeviceAllocator allocator_{kGrowth, kSmallestBin, kLargestBin};
};

}  // namespace

std::unique_ptr<Peer> openCub(std::shared_ptr<BenchDevice> device) {
  return std::make_unique<CubPeer>(std::move(device));
}

}  // namespace cistern::bench
