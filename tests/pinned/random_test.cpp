// Random requests, uses, frees and captures against a plain model of who has which bytes: the host
// writes each block as soon as it has it, and copies that are complete later look whether the bytes
// are still theirs.
#include <array>
#include <iterator>
#include <map>
#include <random>
#include <vector>

#include "tests/pinned/pinned_support.hpp"

namespace cistern::test {
namespace {

struct Held {
  void* block;
  std::size_t bytes;
  std::uint64_t seed;
};

class Session {
 public:
  explicit Session(std::uint64_t seed) : random_(seed) {
    rig_.pinned.setLimit(128 * kMiB);
    for (Stream& stream : streams_) stream = rig_.stream();
  }

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      switch (pick(12)) {
        case 0:
        case 1:
        case 2:
        case 3:
          allocate();
          break;
        case 4:
        case 5:
        case 6:
          free();
          break;
        case 7:
        case 8:
          use();
          break;
        case 9:
          capture();
          break;
        case 10:
          pick(4) == 0 ? replaceStream() : rig_.device->advanceHost(pick(40'000'000));
          break;
        default:
          pick(8) == 0 ? rig_.pinned.emptyCache() : fault();
          break;
      }
      check();
    }
    finish();
  }

 private:
  std::uint64_t pick(std::uint64_t below) {
    return std::uniform_int_distribution<std::uint64_t>(0, below - 1)(random_);
  }
  std::size_t someBytes() {
    const std::uint64_t shift = pick(25);  // up to 16 MiB, each octave as often
    return std::size_t((std::uint64_t{1} << shift) + pick(std::uint64_t{1} << shift) + 16);
  }

  void allocate() {
    const std::size_t bytes = someBytes();
    void* block = nullptr;
    try {
      block = rig_.pinned.allocate(bytes);
    } catch (const OutOfPinnedMemory&) {
      // Only what is held, or waits for a capture, may be in the way: or a call was made to fail.
      if (rig_.device->faults().hits() == faults_) {
        CHECK(rig_.pinned.stats().active_bytes.current + std::int64_t(bytes) >
              std::int64_t(8 * kMiB));
      }
      return;
    }
    const Held held{block, bytes, ++seeds_};
    const Address from = toAddress(block);
    REQUIRE(rig_.pinned.blockSize(block) >= bytes);
    const auto next = held_.lower_bound(from);
    REQUIRE((next == held_.end() || from + bytes <= next->first));
    REQUIRE(
        (next == held_.begin() || std::prev(next)->first + std::prev(next)->second.bytes <= from));
    PinnedRig::write(block, bytes, held.seed);
    held_.emplace(from, held);
  }
  std::map<Address, Held>::iterator some() {
    return std::next(held_.begin(), long(pick(held_.size())));
  }
  void free() {
    if (held_.empty()) return;
    const auto it = some();
    rig_.pinned.free(it->second.block);
    held_.erase(it);
  }
  // What copies may look at, they look at for as long as the program holds the block or they wait.
  void use() {
    if (held_.empty()) return;
    const Held& held = some()->second;
    const Stream stream = streams_[pick(streams_.size())];
    try {
      rig_.pinned.recordStream(held.block, stream);
    } catch (const DeviceFailure&) {
      return;  // no event: nothing is to use the block
    }
    rig_.copy(stream, held.block, held.bytes, held.seed, pick(50'000'000));
  }
  void capture() {
    rig_.device->faults().clear();
    if (capturing_) {
      rig_.device->destroyGraph(rig_.device->endCapture(captured_).orThrow()).orThrow();
    } else {
      captured_ = streams_[pick(streams_.size())];
      rig_.device->beginCapture(captured_, CaptureMode::kGlobal).orThrow();
    }
    capturing_ = !capturing_;
  }
  // Forgotten, destroyed, and another one made, which has the same handle.
  void replaceStream() {
    Stream& stream = streams_[pick(streams_.size())];
    if (capturing_) return;
    rig_.device->faults().clear();
    rig_.pinned.forgetStream(stream);
    rig_.device->destroyStream(stream).orThrow();
    stream = rig_.stream();
  }
  void fault() {
    faults_ = rig_.device->faults().hits();
    if (capturing_) return;  // a call that fails may break it
    rig_.device->faults().failNthOfAll(1 + pick(6), ErrorKind::kOther);
  }

  void check() {
    const PinnedStats stats = rig_.pinned.stats();
    std::uint64_t requested = 0;
    for (const auto& [from, held] : held_) requested += held.bytes;
    REQUIRE(stats.allocation.current == std::int64_t(held_.size()));
    REQUIRE(stats.requested_bytes.current == std::int64_t(requested));
    REQUIRE(stats.reserved_bytes.peak <= std::int64_t(128 * kMiB));
    REQUIRE(rig_.wrong == 0);
    rig_.pinned.audit();
  }
  void finish() {
    rig_.device->faults().clear();
    if (capturing_) capture();
    while (!held_.empty()) free();
    rig_.device->synchronizeDevice().orThrow();
    for (int i = 0; i < 2; ++i) rig_.pinned.emptyCache();
    CHECK(rig_.active() == 0);
    CHECK(rig_.reserved() == 0);
  }

  static sim::SimConfig config() {
    sim::SimConfig config;
    config.reuse_streams = true;
    return config;
  }

  PinnedRig rig_{config()};
  std::mt19937_64 random_;
  std::array<Stream, 4> streams_;
  std::map<Address, Held> held_;
  std::uint64_t seeds_ = 0, faults_ = 0;
  bool capturing_ = false;
  Stream captured_;
};

}  // namespace

TEST_CASE("no pinned block is another's while anybody uses it", "[pinned][random]") {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    INFO("seed " << seed);
    Session(seed).run(600);
  }
}

}  // namespace cistern::test
