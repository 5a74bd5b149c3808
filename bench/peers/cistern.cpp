// Cistern itself, on a real device and on the simulated one. The simulated device never has work
// queued, and its calls cost next to nothing: what remains is Cistern's own bookkeeping.
#include <utility>

#include "allocator/device/sim/sim_device.hpp"
#include "bench/peers/roster.hpp"
#include "cistern/allocator.hpp"

namespace cistern::bench {
namespace {

// A million blocks of the churn hold about 134 GiB, more than the simulated device has by default.
constexpr std::uint64_t kSimCapacity = kTiB;

class CisternPeer final : public Peer {
 public:
  explicit CisternPeer(std::shared_ptr<BenchDevice> device)
      : device_(std::move(device)), allocator_(device_->device()) {}

  void* allocate(std::size_t bytes, Stream stream) override {
    try {
      return allocator_.allocate(bytes, stream);
    } catch (const OutOfMemory&) {
      return nullptr;
    }
  }
  void free(void* block, Stream /*stream*/) override { allocator_.free(block); }
  Stream stream(std::size_t index) override { return device_->stream(index); }

 private:
  std::shared_ptr<BenchDevice> device_;
  CachingAllocator allocator_;
};

std::shared_ptr<BenchDevice> openSim() {
  sim::SimConfig config;
  config.capacity = kSimCapacity;
  config.race_detector = false;
  return std::make_shared<BenchDevice>(std::make_unique<sim::SimDevice>(config));
}

}  // namespace

void addCisternOnSim(Roster& roster) {
  roster.peers.push_back({.name = "cistern:sim",
                          .family = Family::kCistern,
                          .room = {.bytes = kSimCapacity / 10 * 9},
                          .open = [] { return std::make_unique<CisternPeer>(openSim()); }});
}

void addCistern(Roster& roster, const std::shared_ptr<BenchDevice>& device) {
  roster.peers.push_back({.name = "cistern:" + device->device().backend(),
                          .family = Family::kCistern,
                          .room = {.bytes = device->roomBytes()},
                          .open = [device] { return std::make_unique<CisternPeer>(device); }});
}

}  // namespace cistern::bench
