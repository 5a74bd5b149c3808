// What graphs that share a pool need together: no more than the largest of them, in whatever order
// they are captured.
#include <algorithm>
#include <deque>
#include <list>

#include "allocator/base/bounds.hpp"
#include "tests/pools/pools_support.hpp"
#include "tests/support/skipped.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kLayers = 30;
constexpr std::size_t kLargest = 2048;
constexpr std::size_t kScale = 8;

/// The figures of one run.
struct Peaks {
  std::int64_t reserved = 0;  ///< by the pool
  std::int64_t total = 0;     ///< by the allocator, at most
  std::int64_t need = 0;      ///< the most bytes that blocks of one graph took, and kept outputs
};

/// Blocks of the program, and how many bytes they take.
class Blocks {
 public:
  explicit Blocks(PoolRig& rig) : rig_(rig) {}
  void* take(std::size_t bytes, Stream stream) {
    void* block = rig_.allocate(bytes, stream);
    live_ += std::int64_t(rig_.allocator.blockSize(block));
    most_ = std::max(most_, live_);
    rig_.touch(stream, block);
    return block;
  }
  void give(void* block) {
    live_ -= std::int64_t(rig_.allocator.blockSize(block));
    rig_.allocator.free(block);
  }
  void temporary(std::size_t bytes, Stream stream) { give(take(bytes, stream)); }
  /// The same, but until joined() it is in the way of every other stream.
  void temporaryAside(std::size_t bytes, Stream stream) {
    void* block = take(bytes, stream);
    aside_ += std::int64_t(rig_.allocator.blockSize(block));
    rig_.allocator.free(block);
  }
  void joined() { live_ -= std::exchange(aside_, 0); }
  PoolRig& rig() { return rig_; }
  std::int64_t most() const { return most_; }
  std::int64_t live() const { return live_; }
  void restart() { most_ = live_; }

 private:
  PoolRig& rig_;
  std::int64_t live_ = 0, most_ = 0, aside_ = 0;
};

/// A model: what it does for one batch, on the first stream and others that join it. Returns the
/// block that it keeps.
using Model = void* (*)(Blocks& blocks, std::size_t batch, const Streams& streams);

// Activations that live for two layers.
struct Activations {
  explicit Activations(Blocks& of) : blocks(of) {}
  void add(void* block) {
    held.push_back(block);
    if (held.size() <= 2) return;
    blocks.give(held.front());
    held.pop_front();
  }
  ~Activations() {
    for (void* block : held) blocks.give(block);
  }
  Blocks& blocks;
  std::deque<void*> held;
};

// All layers alike, workspaces half in proportion and half constant.
void* alike(Blocks& blocks, std::size_t batch, const Streams& streams) {
  Activations activations(blocks);
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    activations.add(blocks.take(batch * 16 * kKiB, streams[0]));
    blocks.temporary(batch * 6'000 + 8 * kMiB, streams[0]);
    blocks.temporary(4 * kKiB, streams[0]);
  }
  return blocks.take(batch * 512, streams[0]);
}

// Ever smaller activations, each layer of another size, and many small blocks.
void* shrinking(Blocks& blocks, std::size_t batch, const Streams& streams) {
  Activations activations(blocks);
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    activations.add(blocks.take(batch * (40'000 - 1'100 * layer), streams[0]));
    void* columns = blocks.take(batch * 9'000, streams[0]);
    blocks.temporary(3 * kMiB + layer * 100 * kKiB, streams[0]);
    for (std::size_t i = 0; i < 8; ++i) blocks.temporary(1 + i * 3 * kKiB, streams[0]);
    blocks.give(columns);
  }
  return blocks.take(batch * 400, streams[0]);
}

// Blocks of a transformer: queries, keys and values at once, a wide layer, a workspace of 32 MiB.
void* transformer(Blocks& blocks, std::size_t batch, const Streams& streams) {
  Activations activations(blocks);
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    std::vector<void*> qkv;
    for (int i = 0; i < 3; ++i) qkv.push_back(blocks.take(batch * 8'192, streams[0]));
    blocks.temporary(32 * kMiB, streams[0]);
    void* attended = blocks.take(batch * 8'192, streams[0]);
    for (void* block : qkv) blocks.give(block);
    void* wide = blocks.take(batch * 32'768, streams[0]);
    blocks.temporary(32 * kMiB, streams[0]);
    blocks.give(attended);
    activations.add(blocks.take(batch * 8'192, streams[0]));
    blocks.give(wide);
  }
  return blocks.take(batch * 1'000, streams[0]);
}

// Two branches in each layer, on two streams; the second's result is used, and freed, on the first.
void* branches(Blocks& blocks, std::size_t batch, const Streams& streams) {
  Activations activations(blocks);
  PoolRig& rig = blocks.rig();
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    rig.join(streams[1], streams[0]);
    void* result = blocks.take(batch * 7'000, streams[1]);
    blocks.temporaryAside(batch * 5'000 + 4 * kMiB, streams[1]);
    activations.add(blocks.take(batch * 16 * kKiB, streams[0]));
    blocks.temporary(batch * 4'000 + 8 * kMiB, streams[0]);
    rig.join(streams[0], streams[1]);
    blocks.joined();
    rig.allocator.recordStream(result, streams[0]);
    rig.read(streams[0], result);
    blocks.give(result);
  }
  return blocks.take(batch * 512, streams[0]);
}

// Stages of six layers, each with activations half as large as the stage before.
void* stages(Blocks& blocks, std::size_t batch, const Streams& streams) {
  Activations activations(blocks);
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    activations.add(blocks.take(batch * (32 * kKiB >> layer / 6), streams[0]));
    blocks.temporary(batch * 3'000 + 16 * kMiB, streams[0]);
    blocks.temporary(2 * kKiB, streams[0]);
  }
  return blocks.take(batch * 512, streams[0]);
}

// A copy of each activation is made on a second stream while the next layer goes on.
void* copies(Blocks& blocks, std::size_t batch, const Streams& streams) {
  Activations activations(blocks);
  PoolRig& rig = blocks.rig();
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    void* activation = blocks.take(batch * 12'000, streams[0]);
    rig.join(streams[1], streams[0]);
    rig.read(streams[1], activation);
    rig.allocator.recordStream(activation, streams[1]);
    blocks.temporaryAside(batch * 4'000 + kMiB, streams[1]);
    blocks.temporary(batch * 6'000 + 4 * kMiB, streams[0]);
    rig.join(streams[0], streams[1]);
    blocks.joined();
    activations.add(activation);
  }
  return blocks.take(batch * 512, streams[0]);
}

Peaks capture(Model model, const std::vector<std::size_t>& batches) {
  PoolRig rig("backing:pages,background_thread:false", simOf(80 * kGiB));
  const Streams streams(rig.allocator, 2);
  std::vector<void*> outputs;
  Peaks peaks;
  {
    MemPool pool(rig.pools);
    std::list<Graph> graphs;
    Blocks blocks(rig);
    std::int64_t kept = 0;
    for (const std::size_t batch : batches) {
      graphs.emplace_back(rig.pools);
      GraphCapture capturing(graphs.back(), streams[0], pool.id());
      blocks.restart();
      outputs.push_back(model(blocks, batch * kScale, streams));
      peaks.need = std::max(peaks.need, blocks.most() - kept);
      kept = blocks.live();
      capturing.end();
    }
    peaks.need += kept - std::int64_t(rig.allocator.blockSize(outputs.front()));
    peaks.reserved = rig.reservedBy(pool.id());
    peaks.total = rig.allocator.memoryStats()[Stat::kReservedBytes].peak;
    for (Graph& graph : graphs) graph.replay(streams[0]);
    rig.sim().synchronizeDevice().orThrow();
  }
  for (void* block : outputs) rig.allocator.free(block);
  return peaks;
}

void checkOrders(const char* name, Model model) {
  std::vector<std::size_t> up, down;
  for (std::size_t batch = 1; batch <= kLargest; batch *= 2) up.push_back(batch);
  down.assign(up.rbegin(), up.rend());
  const Peaks ascending = capture(model, up), descending = capture(model, down);
  INFO(name << ", in MiB: need " << descending.need / mib(1) << ", ascending "
            << ascending.reserved / mib(1) << ", descending " << descending.reserved / mib(1));
  for (const auto peak : {&Peaks::reserved, &Peaks::total}) {
    const auto [low, high] = std::minmax(ascending.*peak, descending.*peak);
    CHECK(double(high) <= 1.02 * double(low));
    CHECK(double(high) <= 1.03 * double(descending.need));
  }
}

}  // namespace

TEST_CASE(
    "graphs of ascending and descending sizes need the same, and little more than the largest",
    "[pools][pages]") {
  checkOrders("alike", alike);
  checkOrders("stages", stages);
  checkOrders("branches", branches);
}

TEST_CASE("graphs whose layers leave holes of many sizes need the same in either order",
          "[pools][pages][long]") {
  if (kTightBounds) return skipped("bounds are tight");  // fewer free pieces are told apart
  checkOrders("shrinking", shrinking);
  checkOrders("transformer", transformer);
  checkOrders("copies", copies);
}

}  // namespace cistern::test
