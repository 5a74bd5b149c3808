#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "bench/workloads/workloads.hpp"

namespace cistern::bench {
namespace {

class PairLane final : public Lane {
 public:
  PairLane(Peer& peer, Stream stream, std::size_t bytes)
      : peer_(peer), stream_(stream), bytes_(bytes) {}

  bool run(std::size_t steps) override {
    for (std::size_t i = 0; i < steps; ++i) {
      void* block = peer_.allocate(bytes_, stream_);
      if (block == nullptr) return false;
      peer_.free(block, stream_);
    }
    return true;
  }

 private:
  Peer& peer_;
  Stream stream_;
  std::size_t bytes_;
};

Case pairCase(const char* name, std::size_t bytes) {
  return {.name = fmt::format("pair/{}", name),
          .bytes = bytes,
          .lane = [bytes](Peer& peer, Stream stream) {
            return std::make_unique<PairLane>(peer, stream, bytes);
          }};
}

}  // namespace

std::vector<Case> pairCases() {
  return {pairCase("512B", 512), pairCase("64KiB", 64 * kKiB), pairCase("1MiB", kMiB),
          pairCase("24MiB", 24 * kMiB)};
}

}  // namespace cistern::bench
