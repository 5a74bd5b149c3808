// Which allocators take part in a run. An allocator that this machine does not have is left out,
// and the run says why.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/peers/bench_device.hpp"
#include "bench/peers/peer.hpp"

namespace cistern::bench {

struct Roster {
  std::vector<PeerEntry> peers;       ///< the measured Cistern first
  std::vector<std::string> left_out;  ///< "NAME: why"
};

/// Cistern on `backend` ("sim", "cuda", "hip") and on the simulated device, the host's allocators
/// and, on CUDA, the GPU's. `only`: names separated by commas, or empty for all.
Roster makeRoster(const std::string& backend, const std::string& only);

// One file each: a function adds its allocators, or the reason why they are left out.
void addCisternOnSim(Roster& roster);
void addCistern(Roster& roster, const std::shared_ptr<BenchDevice>& device);
void addMalloc(Roster& roster);
void addMimalloc(Roster& roster);
void addCudaPeers(Roster& roster, const std::shared_ptr<BenchDevice>& device);
void addTorch(Roster& roster, const std::shared_ptr<BenchDevice>& device);

/// What a host allocator may hold: a block touches about two pages for its bookkeeping, however
/// large it is.
Room hostRoom();

}  // namespace cistern::bench
