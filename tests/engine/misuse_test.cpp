// Wrong pointers: reported with all that is known, and nothing else changed by them.
#include "allocator/engine/heap/frees.hpp"
#include "tests/engine/engine_support.hpp"

namespace cistern::test {
namespace {

using Catch::Matchers::ContainsSubstring;

/// An allocator whose misuses are collected instead of printed.
struct MisuseRig : SimRig {
  explicit MisuseRig(const char* conf = "") : SimRig(conf) {
    allocator.setMisuseHook([this](const Misuse& misuse) { reports.push_back(misuse); });
  }
  /// Frees it and gives the one report of that, after which all is as before.
  Misuse freeWrongly(Address address) {
    (void)allocator.cacheInfo();  // what the thread keeps lies free then, as a report wants it
    const MemoryStats before = allocator.memoryStats();
    const std::size_t count = reports.size();
    allocator.free(toPointer(address));
    const MemoryStats after = allocator.memoryStats();
    CHECK(after.num_misuses == before.num_misuses + 1);
    for (std::size_t s = 0; s < kStatCount; ++s) {
      CHECK(after.all[s].current == before.all[s].current);
      CHECK(after.all[s].freed == before.all[s].freed);
    }
    allocator.audit();
    REQUIRE(reports.size() == count + 1);
    return reports.back();
  }
  std::vector<Misuse> reports;
};

[[gnu::noinline]] void theFirstFree(CachingAllocator& allocator, void* block) {
  allocator.free(block);
  asm volatile("");  // not a tail call: the report names this function's code
}

}  // namespace

TEST_CASE("a second free is reported with the block and where the first one was", "[engine]") {
  MisuseRig rig;
  void* block = rig.allocator.allocate(4 * kKiB);
  void* beside = rig.allocator.allocate(kKiB);
  theFirstFree(rig.allocator, block);
  const Misuse misuse = rig.freeWrongly(toAddress(block));
  CHECK(misuse.kind == MisuseKind::kDoubleFree);
  CHECK(misuse.verb == "free");
  CHECK(misuse.pointer == toAddress(block));
  CHECK(misuse.block == toAddress(block));
  CHECK(misuse.block_bytes == 4 * kKiB);
  const auto code = toAddress(misuse.freed_by) - toAddress(reinterpret_cast<void*>(&theFirstFree));
  CHECK(code < 256);
  CHECK(misuse.freed_on_thread != 0);
  CHECK_THAT(misuse.text(), ContainsSubstring("it is not allocated"));
  CHECK_THAT(misuse.text(), ContainsSubstring("freed by"));
  rig.allocator.free(beside);
  // Free memory has grown together; the first free is still found.
  CHECK(rig.freeWrongly(toAddress(block)).freed_by == misuse.freed_by);
}

TEST_CASE("a second free of a block that waits for queued work is one too", "[engine]") {
  MisuseRig rig;
  const Stream user = rig.stream();
  void* block = rig.allocator.allocate(kKiB);
  rig.allocator.recordStream(block, user);
  rig.work.delay(user, kLongNs);
  rig.allocator.free(block);
  CHECK(rig.freeWrongly(toAddress(block)).kind == MisuseKind::kDoubleFree);
}

TEST_CASE("a free longer ago than is remembered is still a second free", "[engine]") {
  MisuseRig rig;
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(rig.allocator.allocate(kKiB));
  for (void* block : blocks) rig.allocator.free(block);
  const Misuse misuse = rig.freeWrongly(toAddress(blocks[0]));
  CHECK(misuse.kind == MisuseKind::kDoubleFree);
  CHECK(misuse.freed_by == nullptr);
  CHECK_THAT(misuse.text(), ContainsSubstring("longer ago"));
}

TEST_CASE("of the last frees, as many as are remembered, each is told", "[engine]") {
  MisuseRig rig;
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < 2 * FreeLog::kMost + 2; ++i)
    blocks.push_back(rig.allocator.allocate(kKiB));
  for (std::size_t freed = 1; freed <= blocks.size(); ++freed) {
    rig.allocator.free(blocks[freed - 1]);
    for (std::size_t i = 0; i < freed; ++i) {
      const Misuse misuse = rig.freeWrongly(toAddress(blocks[i]));
      if ((misuse.freed_by != nullptr) != (freed - i <= FreeLog::kMost)) FAIL(i << " of " << freed);
    }
  }
}

TEST_CASE("a free inside a block is reported with the block", "[engine]") {
  MisuseRig rig;
  void* block = rig.allocator.allocate(4 * kMiB);
  for (std::uint64_t offset : {std::uint64_t{1}, std::uint64_t{512}, 2 * kMiB, 4 * kMiB - 1}) {
    const Misuse misuse = rig.freeWrongly(toAddress(block) + offset);
    CHECK(misuse.kind == MisuseKind::kInteriorPointer);
    CHECK(misuse.block == toAddress(block));
    CHECK(misuse.block_bytes == 4 * kMiB);
  }
  void* after = rig.allocator.allocate(4 * kMiB);
  CHECK(toAddress(after) == toAddress(block) + 4 * kMiB);
  rig.allocator.free(after);
  CHECK(rig.freeWrongly(toAddress(block) + 4 * kMiB).kind == MisuseKind::kDoubleFree);
  rig.allocator.free(block);
}

TEST_CASE("a free of what was never given out is reported", "[engine]") {
  MisuseRig rig;
  int local = 0;
  void* block = rig.allocator.allocate(kMiB);
  const Address gone = toAddress(rig.allocator.allocate(64 * kMiB));
  rig.allocator.free(toPointer(gone));
  rig.allocator.emptyCache();
  const Address foreign = rig.sim().malloc(8 * kMiB).orThrow();
  std::vector<Address> never = {toAddress(&local), Address{1}, ~Address{0}, foreign + 7 * kMiB,
                                Address{1} << 57};
  if (onPages(rig.allocator)) {
    // The addresses stay the allocator's, and it remembers what was there.
    const Misuse misuse = rig.freeWrongly(gone + 40 * kMiB);
    CHECK(misuse.kind == MisuseKind::kDoubleFree);
    CHECK(misuse.freed_by != nullptr);
  } else {
    never.push_back(gone + 40 * kMiB);
  }
  for (Address address : never) {
    const Misuse misuse = rig.freeWrongly(address);
    CHECK(misuse.kind == MisuseKind::kForeignPointer);
    CHECK(misuse.pointer == address);
    CHECK(misuse.block == 0);
  }
  rig.allocator.free(block);
}

TEST_CASE("another allocator's block and stream are foreign, on the same ordinal too", "[engine]") {
  MisuseRig rig, other;
  void* const own = rig.allocator.allocate(kMiB, rig.stream());
  const Stream stream = other.stream();
  void* const others = other.allocator.allocate(kMiB, stream);
  CHECK(rig.freeWrongly(toAddress(others)).kind == MisuseKind::kForeignPointer);
  CHECK(other.freeWrongly(toAddress(own)).kind == MisuseKind::kForeignPointer);
  CHECK_THROWS_AS(rig.allocator.allocate(kMiB, stream), InvalidArgument);
  rig.allocator.free(own);
  other.allocator.free(others);
}

TEST_CASE("a wrong recordStream is reported and changes nothing", "[engine]") {
  MisuseRig rig;
  const Stream user = rig.stream();
  void* block = rig.allocator.allocate(kMiB);
  int local = 0;
  rig.allocator.recordStream(&local, user);
  rig.allocator.recordStream(toPointer(toAddress(block) + 512), user);
  REQUIRE(rig.reports.size() == 2);
  CHECK(rig.reports[0].verb == "recordStream");
  CHECK(rig.reports[0].kind == MisuseKind::kForeignPointer);
  CHECK(rig.reports[1].kind == MisuseKind::kInteriorPointer);
  rig.allocator.free(block);
  CHECK(countOf(rig.sim(), Call::kRecordEvent) == 0);
}

TEST_CASE("questions about a pointer that is no block's are refused", "[engine]") {
  MisuseRig rig;
  void* block = rig.allocator.allocate(kMiB);
  int local = 0;
  for (void* wrong : {static_cast<void*>(&local), static_cast<void*>(nullptr),
                      toPointer(toAddress(block) + 512)}) {
    CHECK_THROWS_AS(rig.allocator.blockSize(wrong), InvalidArgument);
    CHECK_THROWS_AS(rig.allocator.getBaseAllocation(wrong), InvalidArgument);
  }
  CHECK(rig.allocator.blockSize(block) == kMiB);
  rig.allocator.free(block);
  CHECK_THROWS_WITH(rig.allocator.blockSize(block), ContainsSubstring("blockSize"));
  CHECK_THROWS_WITH(rig.allocator.getBaseAllocation(block), ContainsSubstring("getBaseAllocation"));
  CHECK(rig.reports.empty());
}

TEST_CASE("the hook may use the allocator, and an empty one restores the default", "[engine]") {
  SimRig rig;
  int calls = 0;
  rig.allocator.setMisuseHook([&](const Misuse&) {
    ++calls;
    rig.allocator.free(rig.allocator.allocate(kKiB));
    rig.allocator.setMisuseHook(nullptr);
  });
  int local = 0;
  rig.allocator.free(&local);
  CHECK(calls == 1);
#if !defined(CISTERN_DEBUG)
  rig.allocator.free(&local);  // the default prints, and goes on
  CHECK(rig.allocator.memoryStats().num_misuses == 2);
#endif
  CHECK(calls == 1);
}

}  // namespace cistern::test
