// Hooks for memory that comes and goes. A hook keeps a mirror of the device's memory from what it
// hears: whenever the device is called, the mirror has nothing that is about to go.
#include <latch>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/engine/engine_support.hpp"
#include "tests/support/mirrored_device.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

/// An allocator on a device that a hook has a mirror of.
struct HookRig {
  explicit HookRig(std::string_view conf = "background_thread:false",
                   sim::SimConfig config = simOf(kGiB))
      : work(std::move(config)), device(work.device()), allocator(device, optionsOf(conf)) {}
  ~HookRig() {
    allocator.audit();
    CHECK(device.wrong() == 0);
    CHECK(work.sim().races().empty());
  }
  HookRig(const HookRig&) = delete;
  HookRig& operator=(const HookRig&) = delete;

  HookId attachMirror() { return allocator.attachMemoryHook(device.hook()); }
  void* allocate(std::uint64_t bytes, Stream stream = {}) {
    return allocator.allocate(bytes, stream);
  }
  void checkMirror() { CHECK(device.heard() == device.there()); }

  SimWork work;
  MirroredDevice device;
  CachingAllocator allocator;
};

/// Allocations and frees of several streams, with an emptyCache now and then.
template <class After>
void storm(HookRig& rig, unsigned seed, int steps, After after) {
  std::mt19937 random(seed);
  const Streams streams(rig.allocator, 3);
  std::vector<void*> blocks;
  for (int i = 0; i < steps; ++i) {
    if (random() % 8 == 0) {
      rig.allocator.emptyCache();
    } else if (!blocks.empty() && random() % 2 == 0) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      rig.allocator.free(blocks.back());
      blocks.pop_back();
    } else {
      const std::uint64_t bytes = (1 + random() % 24) * kMiB;
      try {
        blocks.push_back(rig.allocate(bytes, streams[random() % streams.size()]));
      } catch (const OutOfMemory&) {
      }
    }
    after();
  }
  for (void* block : blocks) rig.allocator.free(block);
}

bool isUnmapping(const MemoryNotice& notice) { return notice.change == MemoryChange::kUnmapping; }

}  // namespace

TEST_CASE("what a hook has heard is what the device has, after each verb", "[engine][hooks]") {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    INFO("seed " << seed);
    HookRig rig(seed % 2 == 0 ? "background_thread:false,recycle:eager" : "background_thread:false",
                simOf(128 * kMiB));
    rig.attachMirror();
    storm(rig, seed, 400, [&] { rig.checkMirror(); });
    rig.allocator.emptyCache();
    CHECK(rig.device.heard().empty());
    CHECK(rig.device.numbers() > 0);
  }
}

TEST_CASE("numbers are complete and in order where many threads allocate", "[engine][hooks]") {
  HookRig rig("", simOf(256 * kMiB));
  rig.attachMirror();
  onThreads(4, [&](std::size_t index) { storm(rig, unsigned(index), 300, [] {}); });
  rig.allocator.emptyCache();
  rig.checkMirror();
}

TEST_CASE("a hook that comes later hears of what is there, in numbers of its own",
          "[engine][hooks]") {
  std::vector<MemoryNotice> notices;
  HookRig rig;
  void* const before = rig.allocate(8 * kMiB);
  rig.attachMirror();
  rig.checkMirror();
  void* const between = rig.allocate(30 * kMiB);
  rig.allocator.attachMemoryHook([&](const MemoryNotice& notice) { notices.push_back(notice); });
  const std::size_t there = notices.size();
  CHECK(there == rig.device.numbers());
  void* const after = rig.allocate(100 * kMiB);
  rig.checkMirror();
  for (std::size_t i = 0; i < notices.size(); ++i) {
    CHECK(notices[i].number == i + 1);
    CHECK(notices[i].was_there == (i < there));
  }
  CHECK(notices.size() > there);
  for (void* block : {before, between, after}) rig.allocator.free(block);
}

TEST_CASE("nothing is allocated where memory is about to go", "[engine][hooks]") {
  std::vector<void*> blocks;
  HookRig rig;
  rig.attachMirror();
  void* const block = rig.allocate(40 * kMiB);
  const HookId hook = rig.allocator.attachMemoryHook([&](const MemoryNotice& notice) {
    if (!isUnmapping(notice)) return;
    CHECK(rig.device.isThere(notice.address));
    blocks.push_back(rig.allocate(30 * kMiB));
    const Address at = toAddress(blocks.back());
    CHECK((at >= notice.address + notice.bytes || at + 30 * kMiB <= notice.address));
  });
  rig.allocator.free(block);
  rig.allocator.emptyCache();
  CHECK(!blocks.empty());
  rig.checkMirror();
  rig.allocator.detach(hook);
  for (void* each : blocks) rig.allocator.free(each);
}

TEST_CASE("a hook may call every verb, and what unmaps there is put off", "[engine][hooks]") {
  int depth = 0, calls = 0;
  HookId self{};
  HookRig rig;
  rig.attachMirror();
  const Stream stream = rig.device.createStream().orThrow();
  const auto every = [&](const MemoryNotice& notice) {
    CHECK(++depth == 1);
    ++calls;
    void* const block = rig.allocate(3 * kMiB, stream);
    rig.allocator.recordStream(block, Stream{});
    rig.allocator.free(block);
    const auto before = rig.device.there();
    rig.allocator.emptyCache();
    CHECK(rig.device.there() == before);
    const HookId other = rig.allocator.attachMemoryHook([](const MemoryNotice&) {});
    rig.allocator.detach(other);
    (void)rig.allocator.memoryStats();
    (void)rig.allocator.snapshot();
    (void)rig.allocator.owns(toPointer(notice.address));
    rig.allocator.audit();
    if (calls == 8) rig.allocator.detach(self);
    --depth;
  };
  self = rig.allocator.attachMemoryHook(every);
  void* const block = rig.allocate(40 * kMiB);
  rig.checkMirror();
  rig.allocator.free(block);
  rig.allocator.emptyCache();
  rig.checkMirror();
  CHECK(calls >= 8);
  rig.allocator.forgetStream(stream);
}

TEST_CASE("no lock is held while a hook runs: others' verbs end meanwhile", "[engine][hooks]") {
  int calls = 0;
  HookRig rig("");
  rig.attachMirror();
  rig.allocator.attachMemoryHook([&](const MemoryNotice&) {
    if (++calls > 4) return;
    std::thread other([&] {
      const Stream stream = rig.device.createStream().orThrow();
      void* const miss = rig.allocate(20 * kMiB, stream);
      void* const hit = rig.allocate(kKiB, stream);
      rig.allocator.free(hit);
      rig.allocator.free(miss);
      rig.allocator.emptyCache();
      rig.allocator.audit();
      (void)rig.allocator.snapshot();
      rig.allocator.forgetStream(stream);
    });
    other.join();
  });
  rig.allocator.free(rig.allocate(40 * kMiB));
  rig.allocator.emptyCache();
  CHECK(calls >= 4);
  rig.allocator.emptyCache();
  rig.checkMirror();
}

TEST_CASE("others allocate while a hook takes its time", "[engine][hooks]") {
  std::latch in_hook{1}, allocated{1};
  bool first = true;
  HookRig rig("");
  rig.attachMirror();
  rig.allocator.attachMemoryHook([&](const MemoryNotice& notice) {
    if (!isUnmapping(notice) || !std::exchange(first, false)) return;
    in_hook.count_down();
    allocated.wait();
  });
  void* const block = rig.allocate(40 * kMiB);
  std::thread slow([&] {
    rig.allocator.free(block);
    rig.allocator.emptyCache();
  });
  in_hook.wait();
  std::vector<void*> blocks;
  for (int i = 0; i < 50; ++i) blocks.push_back(rig.allocate((1 + unsigned(i)) * 256 * kKiB));
  for (void* each : blocks) rig.allocator.free(each);
  allocated.count_down();
  slow.join();
  rig.allocator.emptyCache();
  rig.checkMirror();
}

TEST_CASE("a request that would be refused waits for memory that a hook hears of",
          "[engine][hooks]") {
  for (int i = 0; i < 20; ++i) {
    std::latch in_hook{1}, asks{1};
    bool first = true;
    HookRig rig("", simOf(128 * kMiB));
    rig.attachMirror();
    rig.allocator.attachMemoryHook([&](const MemoryNotice& notice) {
      if (!isUnmapping(notice) || !std::exchange(first, false)) return;
      in_hook.count_down();
      asks.wait();
    });
    void* const block = rig.allocate(100 * kMiB);
    std::thread slow([&] {
      rig.allocator.free(block);
      rig.allocator.emptyCache();
    });
    in_hook.wait();
    const Stream other = rig.device.createStream().orThrow();
    std::thread late([&] { asks.count_down(); });
    void* const needs = rig.allocate(100 * kMiB, other);
    slow.join();
    late.join();
    rig.checkMirror();
    rig.allocator.free(needs);
  }
}

TEST_CASE("room is made for a request at the limit, as without hooks", "[engine][hooks]") {
  HookRig rig("recycle:off,background_thread:false", simOf(128 * kMiB));
  rig.attachMirror();
  const Streams streams(rig.allocator, 4);
  for (std::size_t i = 0; i < 12; ++i) {
    void* const block = rig.allocate((60 + 10 * (i % 4)) * kMiB, streams[i % 4]);
    rig.checkMirror();
    rig.allocator.free(block);
  }
}

TEST_CASE("inside a hook a request does not wait for memory that is going", "[engine][hooks]") {
  int refused = 0;
  HookRig rig("recycle:off,background_thread:false", simOf(128 * kMiB));
  rig.attachMirror();
  void* const block = rig.allocate(100 * kMiB);
  rig.allocator.attachMemoryHook([&](const MemoryNotice& notice) {
    if (!isUnmapping(notice)) return;
    try {
      rig.allocator.free(rig.allocate(100 * kMiB));
    } catch (const OutOfMemory&) {
      ++refused;
    }
  });
  rig.allocator.free(block);
  rig.allocator.emptyCache();
  CHECK(refused > 0);
  rig.allocator.free(rig.allocate(100 * kMiB));
  rig.checkMirror();
}

TEST_CASE("an exception of a hook changes nothing", "[engine][hooks]") {
  int heard = 0;
  HookRig rig;
  rig.allocator.attachMemoryHook([&](const MemoryNotice& notice) {
    if (++heard <= 2 || isUnmapping(notice)) throw std::runtime_error("the hook of the test");
  });
  rig.attachMirror();
  void* const block = rig.allocate(40 * kMiB);
  rig.checkMirror();
  rig.allocator.free(block);
  rig.allocator.emptyCache();
  rig.checkMirror();
  CHECK(rig.device.there().empty());
  CHECK(heard >= 2);
}

TEST_CASE("a hook that throws of what is there is not attached", "[engine][hooks]") {
  int heard = 0;
  HookRig rig;
  void* const block = rig.allocate(40 * kMiB);
  const auto throws = [&](const MemoryNotice&) {
    ++heard;
    throw std::runtime_error("no");
  };
  CHECK_THROWS_AS(rig.allocator.attachMemoryHook(throws), std::runtime_error);
  CHECK_THROWS_AS(rig.allocator.attachMemoryHook({}), InvalidArgument);
  CHECK(heard == 1);
  rig.allocator.free(block);
  rig.allocator.emptyCache();
  CHECK(heard == 1);
  CHECK(rig.device.there().empty());
}

TEST_CASE("a hook that was detached hears nothing more", "[engine][hooks]") {
  std::uint64_t present = 0;
  HookRig rig;
  const HookId mirror = rig.attachMirror();
  void* const block = rig.allocate(40 * kMiB);
  rig.allocator.detach(mirror);
  CHECK_THROWS_AS(rig.allocator.detach(mirror), InvalidArgument);
  const std::uint64_t heard = rig.device.numbers();
  CHECK(heard > 0);
  void* const more = rig.allocate(200 * kMiB);
  CHECK(rig.device.numbers() == heard);
  rig.allocator.attachMemoryHook([&](const MemoryNotice& notice) { present += notice.bytes; });
  CHECK(present == std::uint64_t(reservedOf(rig.allocator)));
  for (void* each : {block, more}) rig.allocator.free(each);
}

TEST_CASE("memory that the device does not take back is told of again", "[engine][hooks]") {
  HookRig rig;
  rig.attachMirror();
  const Call call = onPages(rig.allocator) ? Call::kUnmap : Call::kFree;
  void* const block = rig.allocate(40 * kMiB);
  rig.allocator.free(block);
  rig.work.sim().faults().failNth(call, 1, ErrorKind::kOther);
  rig.allocator.emptyCache();
  rig.checkMirror();
  CHECK(!rig.device.there().empty());
  rig.allocator.emptyCache();
  rig.checkMirror();
  CHECK(rig.device.there().empty());
}

TEST_CASE("at the end hooks hear that everything goes", "[engine][hooks]") {
  SimWork work(simOf(kGiB));
  MirroredDevice device(work.device());
  {
    CachingAllocator allocator(device, optionsOf());
    allocator.attachMemoryHook(device.hook());
    (void)allocator.allocate(40 * kMiB, {});
    allocator.free(allocator.allocate(80 * kMiB, {}));
    CHECK(!device.heard().empty());
  }
  CHECK(device.heard().empty());
  CHECK(device.there().empty());
  CHECK(device.wrong() == 0);
}

TEST_CASE("imported memory is told of, and goes in two phases", "[engine][pages][hooks]") {
  SimRig other("backing:pages");
  bool imported = false;
  std::shared_ptr<void> first, second;  // for longer than the hooks, which let go of one
  HookRig rig("backing:pages");
  void* const block = other.allocator.allocate(5 * kMiB, {});
  const auto exported = other.allocator.exportBlock(block);
  first = rig.allocator.openImport(exported->pages);
  rig.attachMirror();
  rig.checkMirror();
  second = rig.allocator.openImport(exported->pages);
  rig.checkMirror();
  CHECK(rig.device.numbers() == 2);
  rig.allocator.attachMemoryHook([&](const MemoryNotice& notice) {
    imported = notice.imported;
    if (isUnmapping(notice)) second = nullptr;  // put off
  });
  CHECK(imported);
  first = nullptr;
  rig.checkMirror();
  CHECK(rig.device.there().empty());
  CHECK(rig.device.numbers() == 4);
  other.allocator.free(block);
}

}  // namespace cistern::test
