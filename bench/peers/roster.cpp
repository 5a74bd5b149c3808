#include "bench/peers/roster.hpp"

#include <algorithm>
#include <string_view>

#include "allocator/base/text.hpp"
#include "cistern/device.hpp"

namespace cistern::bench {
namespace {

constexpr const char* kCudaNames = "cistern:cuda, cudaMalloc, cudaMallocAsync, cub, torch";

bool isNamed(std::string_view names, std::string_view name) {
  bool more = true;
  while (more) {
    if (trimmed(cutAt(names, ',', more)) == name) return true;
  }
  return false;
}

void addGpuPeers(Roster& roster, const std::string& backend) {
  try {
    const auto device = std::make_shared<BenchDevice>(openDevice(backend));
    addCistern(roster, device);
    if (backend != "cuda") return;
    addCudaPeers(roster, device);
    addTorch(roster, device);
  } catch (const DeviceFailure& failure) {
    const std::string names = backend == "cuda" ? kCudaNames : "cistern:" + backend;
    roster.left_out.push_back(names + ": no device: " + failure.what());
  }
}

}  // namespace

Roster makeRoster(const std::string& backend, const std::string& only) {
  if (backend != "sim" && backend != "cuda" && backend != "hip") {
    throw InvalidArgument("--device is '" + backend + "': must be sim, cuda or hip");
  }
  Roster roster;
  if (backend != "sim") addGpuPeers(roster, backend);
  addCisternOnSim(roster);
  addMalloc(roster);
  addMimalloc(roster);
  std::stable_sort(roster.peers.begin(), roster.peers.end(),
                   [](const auto& a, const auto& b) { return a.family < b.family; });
  if (!only.empty()) {
    std::erase_if(roster.peers, [&](const auto& peer) { return !isNamed(only, peer.name); });
  }
  return roster;
}

}  // namespace cistern::bench
