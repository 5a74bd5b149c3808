// Overflow: what the device has no room for lies in host memory, and nothing else does.
#include "tests/pools/overflow_support.hpp"

namespace cistern::test {

TEST_CASE("a request beyond the device is served in host memory", "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  void* const first = rig.filled(60 * kMiB, s, 1);
  void* const second = rig.filled(30 * kMiB, s, 2);
  CHECK(rig.onDevice(first));
  CHECK(rig.onHost(second));
  CHECK(rig.inHostNow() == 26 * kMiB);  // 4 MiB of the device were left
  CHECK(rig.wrong(first, 60 * kMiB, s, 1) == 0);
  CHECK(rig.wrong(second, 30 * kMiB, s, 2) == 0);
  rig.free(first);
  rig.free(second);
}

TEST_CASE("a large block takes what the device still has, and the rest on the host",
          "[pools][overflow][pages]") {
  for (const std::uint64_t lag_ns : {std::uint64_t{0}, std::uint64_t{10'000'000}}) {
    PoolRig rig("", overflowing(64 * kMiB, kGiB, lag_ns));
    rig.allocator.setOverflow(512 * kMiB);
    const Stream s = rig.stream();
    const auto freeOne = [&](std::vector<void*>& blocks, std::size_t index) {
      rig.free(std::exchange(blocks[index], nullptr));
    };
    std::vector<void*> blocks;
    for (int i = 0; i < 16; ++i) blocks.push_back(rig.written(4 * kMiB, s));
    for (const std::size_t index : {2u, 7u, 11u}) freeOne(blocks, index);  // apart from each other
    void* const over = rig.allocate(30 * kMiB, s);
    CHECK(rig.allocator.hostBytesIn(over) == 18 * kMiB);
    CHECK(rig.allocator.locationOf(over) == Location::kHost);
    rig.work.fill(s, toAddress(over), 30 * kMiB, 1);
    const std::uint64_t before = rig.work.mismatches();
    rig.work.verify(s, toAddress(over), 30 * kMiB, 1);
    CHECK(rig.work.mismatches() == before);
    rig.allocator.audit();
    rig.free(over);
    // The device's part serves the device again.
    for (const std::size_t index : {2u, 7u, 11u}) {
      blocks[index] = rig.written(4 * kMiB, s);
      CHECK(rig.allocator.hostBytesIn(blocks[index]) == 0);
    }
    rig.allocator.audit();
    rig.sim().audit();
    for (void* block : blocks) rig.free(block);
  }
}

TEST_CASE("it takes all of that where a page is larger, or others hold some of the device",
          "[pools][overflow][pages]") {
  for (const std::uint64_t others : {0u, 10u}) {
    for (const std::uint64_t held : {30u, 38u, 42u, 48u, 50u, 52u}) {
      PoolRig rig("page_size:16MiB", overflowing(64 * kMiB, kGiB));
      rig.allocator.setOverflow(512 * kMiB);
      const Stream s = rig.stream();
      const Address foreign =
          others > 0 ? rig.sim().malloc(others * kMiB).orThrow() : 0;  // the limit is 64 MiB
      void* const first = rig.allocate(held * kMiB, s);
      const std::uint64_t left = 64 * kMiB - takenOf(rig.sim());
      void* const over = rig.allocate(40 * kMiB, s);
      CHECK(rig.allocator.hostBytesIn(over) == 40 * kMiB - left);
      rig.free(first);
      rig.free(over);
      if (others > 0) rig.sim().free(foreign).orThrow();
    }
  }
}

TEST_CASE("the device's part of a block that overflowed serves other streams and pools",
          "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream(), t = rig.stream();
  void* const first = rig.allocate(40 * kMiB, s);
  void* const over = rig.allocate(40 * kMiB, s);
  CHECK(rig.allocator.hostBytesIn(over) == 16 * kMiB);
  rig.free(over);
  rig.finish();
  void* const others = rig.allocate(20 * kMiB, t);
  CHECK(rig.onDevice(others));
  rig.free(others);
  rig.finish();
  void* const again = rig.allocate(30 * kMiB, s);
  rig.free(again);
  rig.finish();
  rig.allocator.setOverflow(0);
  MemPool pool(rig.pools);
  void* const pooled = pool.allocate(20 * kMiB, t);
  CHECK(rig.onDevice(pooled));
  rig.free(pooled);
  rig.free(first);
}

TEST_CASE("without overflow, or once it is off, the same request is out of memory",
          "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  void* const first = rig.allocate(60 * kMiB, s);
  rig.allocator.setOverflow(0);
  CHECK(rig.outOfMemory(30 * kMiB, s));
  CHECK(rig.inHostNow() == 0);
  rig.allocator.setOverflow(64 * kMiB);
  CHECK_FALSE(rig.outOfMemory(30 * kMiB, s));
  rig.allocator.setOverflow(0);  // what lies free there serves nobody now
  CHECK(rig.outOfMemory(30 * kMiB, s));
  rig.free(first);
}

TEST_CASE("the device's free memory comes first, and then what lies free on the host",
          "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  void* const first = rig.allocate(60 * kMiB, s);
  void* const second = rig.allocate(30 * kMiB, s);
  const std::uint64_t in_host = rig.inHostNow();
  rig.free(second);
  rig.free(first);
  void* const third = rig.allocate(50 * kMiB, s);
  void* const fourth = rig.allocate(20 * kMiB, s);
  CHECK(rig.onDevice(third));
  CHECK(rig.onHost(fourth));
  CHECK(rig.inHostNow() == in_host);  // no page was made
  rig.free(third);
  rig.free(fourth);
  rig.allocator.emptyCache();
  CHECK(rig.inHostNow() == 0);
}

TEST_CASE("free host memory comes before a wait for another stream", "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream(), t = rig.stream();
  void* const used = rig.allocate(50 * kMiB, s);
  void* const over = rig.allocate(30 * kMiB, s);
  rig.free(over);
  rig.allocator.recordStream(used, t);
  rig.neverEnd(t);
  rig.free(used);  // but t may use it for ever
  void* const next = rig.allocate(20 * kMiB, s);
  CHECK(rig.onHost(next));
  rig.free(next);
  rig.sim().destroyStream(t).orThrow();
}

TEST_CASE("host memory is made only after callbacks had nothing to give up",
          "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  void* held = rig.allocate(60 * kMiB, s);
  int asked = 0;
  const HookId hook = rig.allocator.registerReclaimCallback([&](const MemoryShortage&) {
    ++asked;
    if (held == nullptr) return false;
    rig.free(std::exchange(held, nullptr));
    return true;
  });
  void* const next = rig.allocate(50 * kMiB, s);
  CHECK(rig.onDevice(next));
  CHECK(asked == 1);
  void* const over = rig.allocate(30 * kMiB, s);
  CHECK(rig.onHost(over));
  CHECK(asked == 2);
  rig.free(next);
  rig.free(over);
  rig.allocator.detach(hook);
}

TEST_CASE("what a late callback frees serves with host memory beside", "[pools][overflow][pages]") {
  OverflowRig rig(64 * kMiB, 12 * kMiB);
  const Stream s = rig.stream();
  void* gives = rig.allocate(10 * kMiB, s);
  void* const keeps = rig.allocate(54 * kMiB, s);
  int calls = 0;
  rig.allocator.registerReclaimCallback([&](const MemoryShortage&) {
    if (++calls == 1 || gives == nullptr) return false;
    rig.free(std::exchange(gives, nullptr));
    return true;
  });
  void* const over = rig.allocate(20 * kMiB, s);
  CHECK(rig.allocator.hostBytesIn(over) == 10 * kMiB);
  rig.free(over);
  rig.free(keeps);
}

// ---- Before a request is refused ----------------------------------------------------------------

TEST_CASE("all that lies free is given back before a request is refused",
          "[pools][overflow][pages]") {
  OverflowRig rig(48 * kMiB, 50 * kMiB);
  const Stream a = rig.stream(), b = rig.stream();
  MemPoolOptions options;
  SECTION("the device's in a live pool") {}
  SECTION("the device's in a pool that lends") { options.use_on_oom = true; }
  MemPool pool(rig.pools, options);
  rig.free(pool.allocate(30 * kMiB, a));
  rig.finish();
  void* const over = rig.allocate(70 * kMiB, b);
  CHECK(rig.allocator.hostBytesIn(over) == 22 * kMiB);
  rig.free(over);
}

TEST_CASE("and the host's in a live pool", "[pools][overflow][pages]") {
  OverflowRig rig(64 * kMiB, 50 * kMiB);
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  void* const full = rig.allocate(64 * kMiB, s);
  rig.free(pool.allocate(40 * kMiB, s));
  rig.finish();
  void* const over = rig.allocate(40 * kMiB, s);
  CHECK(rig.allocator.hostBytesIn(over) == 40 * kMiB);
  rig.free(over);
  rig.free(full);
}

TEST_CASE("the device's free memory is found in however many streams", "[pools][overflow][pages]") {
  constexpr int kStreams = 100;
  OverflowRig rig(2 * kStreams * kMiB, kGiB);
  std::vector<void*> blocks;
  for (int i = 0; i < kStreams; ++i) blocks.push_back(rig.allocate(2 * kMiB, rig.stream()));
  for (void* block : blocks) rig.free(block);
  rig.finish();
  void* const over = rig.allocate((2 * kStreams + 16) * kMiB, rig.stream());
  CHECK(rig.allocator.hostBytesIn(over) == 16 * kMiB);
  rig.free(over);
}

// ---- Larger than the device ---------------------------------------------------------------------

TEST_CASE("a block may be larger than the device, and than what may overflow",
          "[pools][overflow][pages]") {
  OverflowRig rig(64 * kMiB, 40 * kMiB);
  const Stream s = rig.stream();
  void* const block = rig.filled(96 * kMiB, s, 4);
  CHECK(rig.allocator.hostBytesIn(block) == 32 * kMiB);
  CHECK(rig.wrong(block, 96 * kMiB, s, 4) == 0);
  const std::string text = rig.allocator.overflow().text();
  CHECK(text.find("32.00 MiB (of a block of 96.00 MiB) of pool {0, 0}") != std::string::npos);
  const std::string full = refusalOf<OutOfMemory>([&] { (void)rig.allocate(20 * kMiB, s); });
  CHECK(full.find("allowed 64.00 MiB, reserved 64.00 MiB") != std::string::npos);
  CHECK(full.find("Overflow has 32.00 MiB of its 40.00 MiB on the host.") != std::string::npos);
  rig.free(block);
  const std::string ever = refusalOf<OutOfMemory>([&] { (void)rig.allocate(105 * kMiB, s); });
  CHECK(ever.find("The device has 64.00 MiB in all, and overflow 40.00 MiB; no such block") !=
        std::string::npos);
}

TEST_CASE("the device's memory that a freed block of overflow had serves all requests",
          "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream(), t = rig.stream();
  const auto again = [&] {
    rig.free(rig.allocate(80 * kMiB, s));  // on the device and the host
    rig.finish();
  };
  again();
  std::vector<void*> small;
  for (int i = 0; i < 100; ++i) small.push_back(rig.allocate(64 * kKiB, i % 2 ? s : t));
  CHECK(std::ranges::all_of(small, [&](void* block) { return rig.onDevice(block); }));
  for (void* block : small) rig.free(block);
}

TEST_CASE("callbacks are asked before host memory that lies free serves",
          "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  void* held = rig.allocate(60 * kMiB, s);
  rig.free(rig.allocate(30 * kMiB, s));
  REQUIRE(rig.inHostNow() >= 20 * kMiB);
  const HookId hook = rig.givesUp(held);
  void* const next = rig.allocate(20 * kMiB, s);
  CHECK(rig.onDevice(next));
  rig.free(next);
  rig.allocator.detach(hook);
}

TEST_CASE("with overflow, callbacks are asked before the host waits", "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream(), t = rig.stream();
  void* const used = rig.allocate(30 * kMiB, s);
  void* held = rig.allocate(30 * kMiB, s);
  rig.allocator.recordStream(used, t);
  rig.neverEnd(t);
  rig.free(used);  // but t may use it for ever
  const HookId hook = rig.givesUp(held);
  void* const next = rig.allocate(25 * kMiB, s);
  CHECK(rig.onDevice(next));
  CHECK(rig.allocator.memoryStats().num_sync_all_streams == 0);
  rig.free(next);
  rig.allocator.detach(hook);
  rig.sim().destroyStream(t).orThrow();
}

TEST_CASE("a step's peak is what the device would have needed", "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  (void)rig.allocator.takePeak();
  void* const first = rig.allocate(60 * kMiB, s);
  void* const over = rig.allocate(30 * kMiB, s);
  rig.free(over);
  CHECK(rig.allocator.takePeak() == 90 * kMiB);
  CHECK(rig.allocator.takePeak() == 60 * kMiB);  // since then
  const std::int64_t peak = rig.allocator.memoryStats()[Stat::kAllocatedBytes].peak;
  CHECK(peak == 90 * kMiB);  // which is another's
  rig.free(first);
  rig.free(rig.allocate(10 * kMiB, s));
  rig.allocator.resetPeakStats();
  CHECK(rig.allocator.takePeak() == 60 * kMiB);
  rig.free(rig.allocate(10 * kMiB, s));
  CHECK(rig.allocator.takePeak() == 10 * kMiB);
}

TEST_CASE("a block larger than the device lies in host memory", "[pools][overflow][pages]") {
  OverflowRig rig(64 * kMiB, 400 * kMiB);
  const Stream s = rig.stream();
  void* const block = rig.filled(300 * kMiB, s, 3);
  CHECK(rig.onHost(block));
  CHECK(rig.wrong(block, 300 * kMiB, s, 3) == 0);
  rig.free(block);
  CHECK(rig.outOfMemory(500 * kMiB, s));
}

TEST_CASE("no more lies in host memory than was allowed, and than the host admits",
          "[pools][overflow][pages]") {
  OverflowRig rig(64 * kMiB, 100 * kMiB, 200 * kMiB);
  const Stream s = rig.stream();
  void* const first = rig.allocate(60 * kMiB, s);
  void* const second = rig.allocate(90 * kMiB, s);
  CHECK(rig.outOfMemory(20 * kMiB, s));
  CHECK(rig.inHostNow() <= 100 * kMiB);
  const std::string refused =
      refusalOf<InvalidArgument>([&] { rig.allocator.setOverflow(500 * kMiB); });
  CHECK(refused.find("setOverflow: 500.00 MiB are more than the 200.00 MiB") != std::string::npos);
  CHECK(refusalOf<InvalidArgument>([&] { rig.allocator.setOverflow(1); }) ==
        "setOverflow: 1 B are less than a page of 2.00 MiB");
  CHECK(rig.allocator.overflow().host_bytes == 100 * kMiB);
  rig.allocator.setOverflow(200 * kMiB);
  CHECK_FALSE(rig.outOfMemory(20 * kMiB, s));
  rig.free(first);
  rig.free(second);
}

TEST_CASE("a refusal says what was missing on both", "[pools][overflow][pages]") {
  OverflowRig rig(64 * kMiB, 32 * kMiB);
  const Stream s = rig.stream();
  void* const first = rig.allocate(58 * kMiB, s);
  const auto advice = [&] {
    try {
      rig.free(rig.allocate(60 * kMiB, s));
      return std::string("served");
    } catch (const OutOfMemory& error) {
      return error.report().advice();
    }
  };
  CHECK(advice().find(
            "22.00 MiB more device memory, or as much of overflow, would have made it fit") !=
        std::string::npos);
  rig.allocator.setOverflow(54 * kMiB);
  CHECK(advice() == "served");
  rig.allocator.emptyCache();
  rig.allocator.setLimit(60 * kMiB);
  rig.allocator.setOverflow(32 * kMiB);
  CHECK(advice().find("A limit higher by 26.00 MiB and 22.00 MiB more device memory would have") !=
        std::string::npos);
  rig.free(first);
}

TEST_CASE("a refusal says what was missing where overflow has nothing left",
          "[pools][overflow][pages]") {
  OverflowRig rig(64 * kMiB, 32 * kMiB);
  const Stream s = rig.stream();
  void* const first = rig.allocate(40 * kMiB, s);
  void* const freed = rig.allocate(18 * kMiB, s);
  void* const in_both = rig.allocate(38 * kMiB, s);
  rig.free(freed);
  rig.allocator.emptyCache();
  try {
    rig.free(rig.allocate(30 * kMiB, s));
    FAIL("served");
  } catch (const OutOfMemory& error) {
    const std::string advice = error.report().advice();
    CHECK(advice.find("12.00 MiB more device memory, or as much of overflow, would have made") !=
          std::string::npos);
  }
  rig.free(first);
  rig.free(in_both);
}

TEST_CASE("a device without host pages refuses overflow by name", "[pools][overflow]") {
  PoolRig rig("backing:segments");
  const std::string refused = refusalOf<InvalidArgument>([&] { rig.allocator.setOverflow(kMiB); });
  CHECK(refused == "setOverflow: memory comes in segments, and overflow needs pages");
  rig.allocator.setOverflow(0);
  CHECK(rig.allocator.overflow().text() == "overflow: off\n");
}

TEST_CASE("the option sets overflow", "[pools][overflow][pages]") {
  PoolRig rig("overflow:64MiB", overflowing(64 * kMiB, kGiB));
  CHECK(rig.allocator.overflow().host_bytes == 64 * kMiB);
  CHECK_THROWS_AS(PoolRig("overflow:2GiB", overflowing(64 * kMiB, kGiB)), InvalidArgument);
}

TEST_CASE("a request that overflows beside n streams makes calls that grow with n",
          "[pools][overflow][pages]") {
  const auto callsBeside = [](std::size_t n) {
    OverflowRig rig(16 * kMiB, 4 * kGiB, 8 * kGiB);
    std::vector<void*> blocks;
    std::vector<Stream> on;
    for (std::size_t i = 0; i < n; ++i) {
      on.push_back(rig.stream());
      blocks.push_back(rig.allocate(2 * kMiB, on.back()));
    }
    for (void* block : blocks) rig.free(block);
    for (std::size_t i = 0; i < 8; ++i) (void)rig.allocate(2 * kMiB, on[i]);
    const auto calls = [&] {
      std::uint64_t all = 0;
      for (const std::uint64_t count : rig.sim().callCounts()) all += count;
      return all;
    };
    const std::uint64_t before = calls();
    CHECK(rig.onHost(rig.allocate(2 * kMiB, on[8])));
    return calls() - before;
  };
  const std::uint64_t some = callsBeside(200), twice = callsBeside(400);
  INFO(some << " calls, then " << twice);
  CHECK(some <= 4 * 200);
  CHECK(twice <= 3 * some);
}

}  // namespace cistern::test
