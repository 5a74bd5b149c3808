// The allocators that come with CUDA. Each call goes to the vendor's function as a user would make
// it, not through Cistern's device, which would add its own few nanoseconds.
#pragma once

#include "bench/peers/roster.hpp"

namespace cistern::bench {

std::unique_ptr<Peer> openCudaMalloc(std::shared_ptr<BenchDevice> device);
std::unique_ptr<Peer> openCudaMallocAsync(std::shared_ptr<BenchDevice> device);
std::unique_ptr<Peer> openCub(std::shared_ptr<BenchDevice> device);

}  // namespace cistern::bench
