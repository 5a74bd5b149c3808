// Only in builds with nvcc; absent.cpp stands in for it elsewhere.
#include "bench/peers/cuda/cuda_peers.hpp"

namespace cistern::bench {
namespace {

// Measured: 66 to 84 us for a pair, where the caches take some hundred ns.
constexpr std::size_t kCudaMallocSlowness = 200;

}  // namespace

void addCudaPeers(Roster& roster, const std::shared_ptr<BenchDevice>& device) {
  const Room room{.bytes = device->roomBytes()};
  // Powers of two waste up to half of what they hold.
  const Room cub_room{.bytes = room.bytes / 2};
  roster.peers.push_back(
      {.name = "cudaMalloc", .slow_factor = kCudaMallocSlowness, .room = room, .open = [device] {
         return openCudaMalloc(device);
       }});
  roster.peers.push_back({.name = "cudaMallocAsync", .room = room, .open = [device] {
                            return openCudaMallocAsync(device);
                          }});
  roster.peers.push_back(
      {.name = "cub", .room = cub_room, .open = [device] { return openCub(device); }});
}

}  // namespace cistern::bench
