// Until when other streams use freed blocks, as PyTorch sees it.
#include "interop/torch/block_uses.hpp"

#include "allocator/device/sim/sim_device.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

using cistern_torch::BlockUses;
using Blocks = std::vector<void*>;

constexpr std::uint64_t kLagNs = 1'000'000;

sim::SimConfig lagging() {
  sim::SimConfig config;
  config.gpu_lag_ns = kLagNs;
  return config;
}

/// Two side streams of a GPU that is behind, and blocks that are addresses only.
struct UsesRig {
  sim::SimDevice sim{lagging()};
  Stream first = sim.createStream().orThrow(), second = sim.createStream().orThrow();
  BlockUses uses;
  std::vector<char> memory = std::vector<char>(4);

  void* block(std::size_t i) { return &memory[i]; }
  void use(std::size_t i, Stream stream) {
    sim.launch(stream, {}).orThrow();
    uses.use(block(i), reinterpret_cast<CUstream_st*>(stream.raw), sim);
  }
  bool free(std::size_t i, bool region_open = false) { return uses.free(block(i), region_open); }
  Blocks ended(bool region_open = false) { return uses.takeEnded(region_open); }
  void catchUp() { sim.advanceHost(2 * kLagNs); }
};

}  // namespace

TEST_CASE("a block that no other stream uses is free at once", "[torch][block_uses]") {
  UsesRig rig;
  CHECK_FALSE(rig.free(0));
  CHECK(rig.ended().empty());
}

TEST_CASE("a freed block is used until each stream has done what it had queued at the free",
          "[torch][block_uses]") {
  UsesRig rig;
  rig.use(0, rig.first);
  rig.use(0, rig.first);
  rig.sim.advanceHost(kLagNs / 2);
  rig.use(0, rig.second);
  rig.use(1, rig.first);
  CHECK(rig.free(0));
  CHECK(rig.ended().empty());
  rig.sim.advanceHost(kLagNs * 3 / 4);
  CHECK(rig.ended().empty());  // the second stream is not done
  rig.catchUp();
  CHECK(rig.ended() == Blocks{rig.block(0)});
  CHECK(rig.ended().empty());
  CHECK(rig.free(1));  // its uses are marked at its own free
}

TEST_CASE("work that is queued after the free does not hold a block", "[torch][block_uses]") {
  UsesRig rig;
  rig.use(0, rig.first);
  CHECK(rig.free(0));
  rig.sim.advanceHost(kLagNs * 3 / 4);
  rig.use(1, rig.first);
  rig.sim.advanceHost(kLagNs / 2);
  CHECK(rig.ended() == Blocks{rig.block(0)});
}

TEST_CASE("while a region is open nothing is marked or looked at", "[torch][block_uses]") {
  UsesRig rig;
  rig.use(0, rig.first);
  CHECK(rig.free(0, true));
  rig.catchUp();
  CHECK(rig.ended(true).empty());
  rig.use(1, rig.first);  // the mark comes now, behind this too
  CHECK(rig.ended().empty());
  rig.catchUp();
  CHECK(rig.ended() == Blocks{rig.block(0)});
}

TEST_CASE("a stream that is captured gets its mark after the capture", "[torch][block_uses]") {
  UsesRig rig;
  rig.sim.beginCapture(rig.first, CaptureMode::kRelaxed).orThrow();
  rig.use(0, rig.first);
  CHECK(rig.free(0));
  CHECK(rig.ended().empty());
  rig.sim.destroyGraph(rig.sim.endCapture(rig.first).orThrow()).orThrow();
  rig.use(1, rig.first);
  CHECK(rig.ended().empty());
  rig.catchUp();
  CHECK(rig.ended() == Blocks{rig.block(0)});
}

TEST_CASE("memory that is given out again ends the uses of what lay there", "[torch][block_uses]") {
  UsesRig rig;
  rig.use(0, rig.first);
  CHECK(rig.free(0));
  CHECK(rig.uses.allocated(rig.block(0)));
  rig.catchUp();
  CHECK(rig.ended().empty());
  CHECK_FALSE(rig.free(0));  // the new block has no use
  rig.use(1, rig.first);
  CHECK_FALSE(rig.uses.allocated(rig.block(1)));  // what was said of a block that is gone
  CHECK_FALSE(rig.free(1));
}

TEST_CASE("an event that the device refuses ends the use", "[torch][block_uses]") {
  UsesRig rig;
  rig.use(0, rig.first);
  rig.sim.faults().failAll(Call::kCreateEvent, ErrorKind::kOther);
  CHECK_FALSE(rig.free(0));
  rig.sim.faults().clear();
  rig.use(1, rig.first);
  CHECK(rig.free(1));
  rig.sim.faults().failAll(Call::kQueryEvent, ErrorKind::kOther);
  CHECK(rig.ended() == Blocks{rig.block(1)});
}

TEST_CASE("streams of two devices may have one handle", "[torch][block_uses]") {
  sim::SimDevice other{lagging()};
  UsesRig rig;
  rig.use(0, Stream{});
  other.launch(Stream{}, {}).orThrow();
  rig.uses.use(rig.block(0), nullptr, other);
  CHECK(rig.free(0));
  rig.catchUp();
  CHECK(rig.ended().empty());  // the other device is not done
  other.advanceHost(2 * kLagNs);
  CHECK(rig.ended() == Blocks{rig.block(0)});
}

TEST_CASE("events are used again, and go with the object", "[torch][block_uses]") {
  UsesRig rig;
  {
    BlockUses uses;
    for (int i = 0; i < 10; ++i) {
      uses.use(rig.block(0), reinterpret_cast<CUstream_st*>(rig.first.raw), rig.sim);
      CHECK(uses.free(rig.block(0), false));
      rig.catchUp();
      CHECK(uses.takeEnded(false).size() == 1);
    }
    uses.use(rig.block(0), reinterpret_cast<CUstream_st*>(rig.first.raw), rig.sim);
    CHECK(uses.free(rig.block(0), false));
  }
  const CallCounts calls = rig.sim.callCounts();
  CHECK(calls[std::size_t(Call::kCreateEvent)] == 1);
  CHECK(calls[std::size_t(Call::kDestroyEvent)] == 1);
}

}  // namespace cistern::test
