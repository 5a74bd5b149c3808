// The cases that hold on every device, not the simulated one alone.
#include <map>
#include <random>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/pinned/pinned_support.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

struct Written {
  void* block;
  std::size_t bytes;
  std::uint32_t seed;
};

/// Random requests, uses in both directions and frees, by one thread.
void churn(PinnedWorkRig& rig, const std::vector<Stream>& streams, std::uint32_t self) {
  std::mt19937 random(self + 1);
  std::vector<Written> held;
  const std::uint64_t late = rig.work.isPlayed() ? 50'000 : 20'000;
  for (std::uint32_t step = 0; step < 200; ++step) {
    const std::size_t bytes = 16 + random() % (std::size_t{1} << (10 + random() % 13));
    void* block = nullptr;
    try {
      block = rig.pinned.allocate(bytes);
    } catch (const OutOfPinnedMemory&) {
    }
    if (block != nullptr) {
      const Written last{block, bytes, step << 8 | self};
      PinnedWorkRig::write(block, bytes, last.seed);
      const Stream stream = streams[random() % streams.size()];
      rig.pinned.recordStream(block, stream);
      rig.copy(stream, block, bytes, last.seed, random() % 4 == 0 ? late : 0);
      if (random() % 3 == 0) rig.copyBack(stream, block, bytes, last.seed + 7, late);
      held.push_back(last);
    }
    if (!held.empty() && (block == nullptr || held.size() > random() % 8)) {
      std::swap(held.back(), held[random() % held.size()]);
      rig.pinned.free(held.back().block);
      held.pop_back();
    }
    if (step % 100 == 99) rig.pinned.emptyCache();
  }
  for (const Written& one : held) rig.pinned.free(one.block);
}

}  // namespace

TEST_CASE("no block is another's while copies in either direction use it", "[pinned][gpu-too]") {
  onEachPinnedRig([](PinnedWorkRig& rig) {
    rig.pinned.setLimit(16 * kMiB);
    const std::vector<Stream> streams{rig.stream(), rig.stream(), rig.stream()};
    churn(rig, streams, 0);
    rig.device.synchronizeDevice().orThrow();
    rig.pinned.emptyCache();
    CHECK(rig.active() == 0);
    CHECK(rig.reserved() == 0);
  });
}

TEST_CASE("threads share a pinned allocator on any device", "[pinned][threads][gpu-too]") {
  onEachPinnedRig([](PinnedWorkRig& rig) {
    rig.pinned.setLimit(32 * kMiB);
    const std::vector<Stream> streams{rig.stream(), rig.stream(), rig.stream()};
    onThreads(3, [&](std::size_t self) { churn(rig, streams, std::uint32_t(self)); });
    rig.device.synchronizeDevice().orThrow();
    rig.pinned.emptyCache();
    CHECK(rig.active() == 0);
    CHECK(rig.reserved() == 0);
  });
}

TEST_CASE("a pinned block that no stream uses is free at once", "[pinned][gpu-too]") {
  onEachPinnedRig([](PinnedWorkRig& rig) {
    void* const block = rig.pinned.allocate(kMiB);
    rig.pinned.free(block);
    CHECK(rig.pinned.allocate(kMiB) == block);
    CHECK(rig.calls(Call::kRecordEvent) + rig.calls(Call::kQueryEvent) == 0);
  });
}

TEST_CASE("a pinned block waits for the copies that use it, and nobody else does",
          "[pinned][gpu-too]") {
  onEachPinnedRig([](PinnedWorkRig& rig) {
    const Stream stream = rig.stream();
    void* const used = rig.freedInUse(stream, kMiB);
    CHECK(rig.active() == 1);
    CHECK(rig.pinned.stats().allocation.current == 0);
    void* const other = rig.pinned.allocate(kMiB);
    CHECK(other != used);
    PinnedWorkRig::write(other, kMiB, 2);
    CHECK(rig.waits() == 0);
    rig.sync(stream);
    void* const again = rig.pinned.allocate(kMiB);
    CHECK(again == used);
    PinnedWorkRig::write(again, kMiB, 3);
  });
}

TEST_CASE("a pinned block waits for each stream that it was recorded on, once",
          "[pinned][gpu-too]") {
  onEachPinnedRig([](PinnedWorkRig& rig) {
    const Stream first = rig.stream(), second = rig.stream();
    void* const block = rig.pinned.allocate(kMiB);
    for (const Stream stream : {first, second}) {
      rig.copy(stream, block, kMiB, 0, stream == first ? kLateNs : 3 * kLateNs);
      for (int i = 0; i < 3; ++i) rig.pinned.recordStream(block, stream);
    }
    PinnedWorkRig::write(block, kMiB, 0);
    rig.pinned.free(block);
    CHECK(rig.calls(Call::kRecordEvent) == 2);
    rig.sync(first);
    CHECK(rig.pinned.allocate(kMiB) != block);
    rig.sync(second);
    CHECK(rig.pinned.allocate(kMiB) == block);
  });
}

TEST_CASE("the per-thread default stream uses no pinned block", "[pinned][gpu-too]") {
  onEachPinnedRig([](PinnedWorkRig& rig) {
    void* const block = rig.pinned.allocate(kMiB);
    const auto says = Catch::Matchers::ContainsSubstring("per-thread default stream");
    CHECK_THROWS_WITH(rig.pinned.recordStream(block, Stream{2}), says);
    CHECK_THROWS_WITH(rig.pinned.forgetStream(Stream{2}), says);
    rig.pinned.free(block);
    CHECK(rig.pinned.allocate(kMiB) == block);
  });
}

TEST_CASE("a block that a captured stream uses waits until the capture is over",
          "[pinned][gpu-too]") {
  onEachPinnedRig([](PinnedWorkRig& rig) {
    const Stream stream = rig.stream();
    void* const block = rig.pinned.allocate(kMiB);
    rig.device.beginCapture(stream, CaptureMode::kGlobal).orThrow();
    rig.pinned.recordStream(block, stream);  // a copy of several pieces cannot be captured on CUDA
    rig.pinned.free(block);
    CHECK(rig.calls(Call::kRecordEvent) == 0);
    CHECK(rig.pinned.allocate(kMiB) != block);
    const DeviceGraph graph = rig.device.endCapture(stream).orThrow();
    void* again = rig.pinned.allocate(kMiB);  // its poll asks the stream again, which has no work
    if (again != block) {                     // a GPU may take a moment for the event
      rig.pinned.free(again);
      rig.sync(stream);
      again = rig.pinned.allocate(kMiB);
    }
    CHECK(again == block);
    rig.device.destroyGraph(graph).orThrow();
  });
}

TEST_CASE("pinned memory is cut to what is asked for", "[pinned][gpu-too]") {
  onEachPinnedRig([](PinnedWorkRig& rig) {
    for (const std::uint64_t bytes : {1 * kMiB + 1, 20 * kMiB + 400 * kKiB, 33 * kMiB, 65 * kMiB}) {
      void* const block = rig.pinned.allocate(bytes);
      PinnedWorkRig::write(block, bytes, 1);
      CHECK(toAddress(block) % 512 == 0);
      CHECK(rig.pinned.blockSize(block) - bytes < 512);
      CHECK(std::uint64_t(rig.reserved()) - bytes < 2 * kMiB);
      rig.pinned.free(block);
      rig.pinned.emptyCache();
      CHECK(rig.reserved() == 0);
    }
    CHECK(rig.pinned.allocate(0) == nullptr);
    rig.pinned.free(nullptr);
  });
}

TEST_CASE("pieces tell every block, and add up to what is pinned", "[pinned][gpu-too]") {
  onEachPinnedRig([](PinnedWorkRig& rig) {
    CHECK(rig.pinned.pieces().empty());
    void* const held = rig.pinned.allocate(3 * kMiB);
    const Stream on = rig.stream();
    void* const pending = rig.freedInUse(on, 2048);
    std::uint64_t bytes = 0;
    std::map<Address, PinnedPiece> pieces;
    for (const PinnedPiece& piece : rig.pinned.pieces()) {
      bytes += piece.bytes;
      pieces[piece.address] = piece;
    }
    CHECK(std::int64_t(bytes) == rig.reserved());
    CHECK(pieces[toAddress(held)].use == BlockUse::kAllocated);
    CHECK(pieces[toAddress(held)].bytes == 3 * kMiB);
    CHECK(pieces[toAddress(pending)].use == BlockUse::kPending);
    CHECK(pieces[toAddress(pending)].bytes == 2048);
    CHECK(pieces.size() == 4);  // and the rest of each segment
    rig.pinned.free(held);
    rig.sync(on);
  });
}

TEST_CASE("small requests share a segment", "[pinned][gpu-too]") {
  onEachPinnedRig([](PinnedWorkRig& rig) {
    std::vector<void*> blocks;
    for (int i = 0; i < 1024; ++i) blocks.push_back(rig.pinned.allocate(2048));
    CHECK(rig.reserved() == std::int64_t(2 * kMiB));
    CHECK(rig.calls(Call::kHostMalloc) == 1);
    for (void* block : blocks) rig.pinned.free(block);
    void* const whole = rig.pinned.allocate(kMiB);
    CHECK(rig.calls(Call::kHostMalloc) == 1);
    rig.pinned.free(whole);
  });
}

TEST_CASE("what is freed is split for smaller requests, and joined again", "[pinned][gpu-too]") {
  onEachPinnedRig([](PinnedWorkRig& rig) {
    void* const whole = rig.pinned.allocate(64 * kMiB);
    rig.pinned.free(whole);
    std::vector<void*> parts;
    for (int i = 0; i < 16; ++i) parts.push_back(rig.pinned.allocate(4 * kMiB));
    CHECK(rig.calls(Call::kHostMalloc) == 1);
    for (std::size_t i = 0; i < parts.size(); i += 2) rig.pinned.free(parts[i]);
    for (std::size_t i = 1; i < parts.size(); i += 2) rig.pinned.free(parts[i]);
    CHECK(rig.pinned.allocate(64 * kMiB) == whole);
    CHECK(rig.calls(Call::kHostMalloc) == 1);
  });
}

TEST_CASE("what is counted is exact", "[pinned][gpu-too]") {
  onEachPinnedRig([](PinnedWorkRig& rig) {
    void* const one = rig.pinned.allocate(1'000);
    void* const two = rig.pinned.allocate(3 * kMiB);
    PinnedStats stats = rig.pinned.stats();
    CHECK(stats.allocation.current == 2);
    CHECK(stats.segment.current == 2);
    CHECK(stats.requested_bytes.current == std::int64_t(1'000 + 3 * kMiB));
    CHECK(stats.allocated_bytes.current == std::int64_t(1'024 + 3 * kMiB));
    CHECK(stats.active_bytes.current == stats.allocated_bytes.current);
    CHECK(stats.reserved_bytes.current == std::int64_t(6 * kMiB));
    CHECK(stats.num_host_alloc == 2);
    CHECK(stats.host_bytes > 0);
    rig.pinned.free(two);
    rig.pinned.resetPeakStats();
    rig.pinned.resetAccumulatedStats();
    stats = rig.pinned.stats();
    CHECK(stats.allocated_bytes.peak == 1'024);
    CHECK(stats.allocated_bytes.allocated == 0);
    CHECK(stats.allocation.freed == 0);
    rig.pinned.free(one);
    rig.pinned.emptyCache();
    stats = rig.pinned.stats();
    CHECK(stats.allocation.freed == 1);
    CHECK(stats.requested_bytes.current == 0);
    CHECK(stats.reserved_bytes.current == 0);
    CHECK(stats.segment.current == 0);
    CHECK(stats.num_host_free == 2);
  });
}

TEST_CASE("a pointer is told whose it is", "[pinned][gpu-too]") {
  onEachPinnedRig([](PinnedWorkRig& rig) {
    int other = 0;
    void* const block = rig.pinned.allocate(5'000);
    CHECK(rig.pinned.isBlock(block));
    CHECK(!rig.pinned.isBlock(static_cast<std::byte*>(block) + 512));
    CHECK(!rig.pinned.isBlock(&other));
    CHECK(!rig.pinned.isBlock(nullptr));
    CHECK_THROWS_WITH(rig.pinned.blockSize(&other),
                      Catch::Matchers::ContainsSubstring("never gave it out"));
    rig.pinned.free(block);
    CHECK(!rig.pinned.isBlock(block));
    CHECK_THROWS_AS(rig.pinned.blockSize(block), InvalidArgument);
  });
}

TEST_CASE("a wrong free is reported, and changes nothing", "[pinned][gpu-too]") {
  onEachPinnedRig([](PinnedWorkRig& rig) {
    std::vector<MisuseKind> kinds;
    rig.pinned.setMisuseHook([&](const Misuse& misuse) {
      kinds.push_back(misuse.kind);
      CHECK((misuse.verb == "free" || misuse.verb == "recordStream"));
      (void)rig.pinned.stats();  // no lock is held
    });
    int other = 0;
    void* const block = rig.pinned.allocate(5'000);
    rig.pinned.free(static_cast<std::byte*>(block) + 512);
    rig.pinned.free(&other);
    CHECK(rig.pinned.blockSize(block) == 5'120);
    rig.pinned.free(block);
    rig.pinned.free(block);
    rig.pinned.recordStream(block, Stream{});
    CHECK(kinds == std::vector<MisuseKind>{MisuseKind::kInteriorPointer,
                                           MisuseKind::kForeignPointer, MisuseKind::kDoubleFree,
                                           MisuseKind::kDoubleFree});
    CHECK(rig.pinned.stats().num_misuses == 4);
  });
}

TEST_CASE("a block that waits for work is freed once", "[pinned][gpu-too]") {
  onEachPinnedRig([](PinnedWorkRig& rig) {
    int misuses = 0;
    rig.pinned.setMisuseHook(
        [&](const Misuse& misuse) { misuses += misuse.kind == MisuseKind::kDoubleFree ? 1 : 0; });
    rig.pinned.free(rig.freedInUse(rig.stream(), kMiB));
    CHECK(misuses == 1);
    CHECK(rig.active() == 1);
  });
}

TEST_CASE("a child of fork leaves pinned memory to its parent", "[pinned][gpu-too]") {
  onEachPinnedRig([](PinnedWorkRig& rig) {
    void* const block = rig.pinned.allocate(kMiB);
    const pid_t child = ::fork();
    if (child == 0) {
      rig.pinned.free(block);
      rig.pinned.emptyCache();
      bool refused = false;
      try {
        (void)rig.pinned.allocate(kMiB);
      } catch (const Error&) {
        refused = true;
      }
      ::_exit(refused ? 0 : 1);
    }
    int status = 1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    rig.pinned.free(block);
    CHECK(rig.pinned.allocate(kMiB) == block);
  });
}

}  // namespace cistern::test
