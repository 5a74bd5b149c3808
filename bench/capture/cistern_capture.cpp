#include <optional>

#include "bench/capture/capture_peer.hpp"
#include "cistern/graph.hpp"

namespace cistern::bench {
namespace {

class CisternCapture final : public CapturePeer {
 public:
  CisternCapture(Device& device, std::string name, const std::string& conf)
      : name_(std::move(name)), allocator_(device, Options::parse(conf)), pools_(allocator_) {}

  std::string name() const override { return name_; }
  void begin(Stream origin) override {
    graph_.emplace(pools_);
    graph_->captureBegin(origin);
  }
  void* allocate(std::size_t bytes, Stream stream) override {
    return allocator_.allocate(bytes, stream);
  }
  void free(void* block, Stream) override { allocator_.free(block); }
  void end() override {
    graph_->captureEnd();
    graph_->instantiate();
  }
  void replay(Stream stream) override { graph_->replay(stream); }
  std::uint64_t reserved() override {
    return std::uint64_t(allocator_.memoryStats()[Stat::kReservedBytes].current);
  }
  void drop() override {
    graph_.reset();
    allocator_.emptyCache();
  }

 private:
  const std::string name_;
  CachingAllocator allocator_;
  Pools pools_;
  std::optional<Graph> graph_;
};

}  // namespace

std::unique_ptr<CapturePeer> cisternCapturePeer(Device& device, const std::string& name,
                                                const std::string& conf) {
  return std::make_unique<CisternCapture>(device, name, conf);
}

}  // namespace cistern::bench
