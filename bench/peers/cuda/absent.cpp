// In place of the CUDA peers, in builds without nvcc.
#include "bench/peers/roster.hpp"

namespace cistern::bench {

void addCudaPeers(Roster& roster, const std::shared_ptr<BenchDevice>& /*device*/) {
  roster.left_out.emplace_back(
      "cudaMalloc, cudaMallocAsync, cub: this build was made without nvcc");
}

}  // namespace cistern::bench
