// The driver's own memory nodes: an allocation during a capture becomes a node of the graph.
#include "bench/capture/capture_peer.hpp"
#include "bench/capture/graph_memory.hpp"
#include "bench/capture/plain_graph.hpp"

namespace cistern::bench {
namespace {

class DriverCapture final : public CapturePeer {
 public:
  explicit DriverCapture(Device& device) : device_(device), graph_(device) {}

  std::string name() const override { return "driver's memory nodes"; }
  void begin(Stream origin) override { graph_.begin(origin); }
  void* allocate(std::size_t bytes, Stream stream) override {
    return toPointer(device_.mallocAsync(bytes, stream).orThrow());
  }
  void free(void* block, Stream stream) override {
    device_.freeAsync(toAddress(block), stream).orThrow();
  }
  void end() override { graph_.end(); }
  void replay(Stream stream) override { graph_.replay(stream); }
  std::uint64_t reserved() override { return graphMemoryPeak(device_.ordinal()); }
  void drop() override {
    graph_.drop();
    forgetGraphMemory(device_.ordinal());
  }

 private:
  Device& device_;
  PlainGraph graph_;
};

}  // namespace

std::unique_ptr<CapturePeer> driverCapturePeer(Device& device) {
  return std::make_unique<DriverCapture>(device);
}

}  // namespace cistern::bench
