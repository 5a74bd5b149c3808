// A capture may fail at any device call, or be abandoned anywhere: nothing of it is left.
#include "tests/pools/unwind_support.hpp"

namespace cistern::test {
namespace {

constexpr const char* kConfs[] = {"background_thread:false",
                                  "background_thread:false,recycle:eager"};

/// What there is before the capture.
struct Before {
  bool live_pool;  ///< it captures into a pool of the program's, which has memory already
  bool eager;      ///< the default pool has memory, and work queued
};

/// A rig on which captures fail, one after another, and the picture that each must leave.
class Ground {
 public:
  Ground(Before before, const char* conf)
      : rig(conf, simOf(kGiB, 20'000)), program(rig), before_(before) {
    if (before.live_pool) mine_.emplace(rig.pools);
    if (before.live_pool) held_.push_back(mine_->allocate(3 * kMiB, stream(0)));
    if (before.eager) held_.push_back(rig.allocate(kMiB, stream(2)));
    empty();
    empty_ = picture();
  }
  ~Ground() {
    for (void* block : held_) rig.allocator.free(block);
    mine_.reset();
    rig.sim().synchronizeDevice().orThrow();
    rig.allocator.emptyCache();
    CHECK(reservedOf(rig.allocator) == 0);
    CHECK(takenOf(rig.sim()) == 0);
  }

  /// A capture into which `plan` puts trouble. Whether there was any.
  template <class Plan>
  void tryOne(Plan plan) {
    setTheScene();
    const Picture before = picture();
    const std::uint64_t hits = rig.sim().faults().hits();
    bool thrown = false;
    try {
      plan();
    } catch (const DeviceFailure&) {
      thrown = true;
    } catch (const OutOfMemory&) {
      thrown = true;
    } catch (const Abandoned&) {
      thrown = true;
    }
    rig.sim().faults().clear();
    met = thrown || rig.sim().faults().hits() > hits;
    const Picture after = picture();
    CHECK(!after.routed);
    CHECK(!after.recording);
    unwound = !thrown || program.outlived() || unwoundTo(before, after);
    rig.allocator.audit();
    empty();
    CHECK(picture() == empty_);
    CHECK(!ownPoolIsLeft());
    CHECK(rig.sim().races().empty());
  }
  /// The same graph, without trouble.
  void tryAgain() {
    tryOne([&] { program.run(pool()); });
    CHECK(!met);
  }

  MempoolId_t pool() const { return mine_ ? mine_->id() : MempoolId_t{}; }

  PoolRig rig;
  CaptureProgram program;
  bool met = false;      ///< the last capture did meet trouble
  bool unwound = false;  ///< and left nothing, at once
  int stuck = 0;         ///< captures after which frees waited for someone to be out of memory

 private:
  Stream stream(std::size_t i) const { return program.streams()[i]; }
  Picture picture() { return pictureOf(rig, program, pool()); }
  bool ownPoolIsLeft() { return !before_.live_pool && rig.known(program.lastPool()); }
  void setTheScene() {
    if (before_.live_pool) {
      void* free = mine_->allocate(9 * kMiB, stream(1));
      rig.touch(stream(1), free);
      rig.allocator.free(free);
      rig.sim().synchronizeDevice().orThrow();  // replays are not in that stream's order
    }
    if (!before_.eager) return;
    for (std::size_t i = 0; i < 3; ++i) rig.temporary(30 * kMiB, stream(i));
  }
  // What is free may have gone back, or be the capture's pool's; nothing may have come.
  bool unwoundTo(const Picture& before, const Picture& after) {
    CHECK(after.uses <= before.uses);
    CHECK(after.held == before.held);
    return !ownPoolIsLeft() && after.uses == before.uses &&
           after.pool_reserved <= before.pool_reserved && after.reserved <= before.reserved &&
           after.taken <= before.taken;
  }
  // What was queued is complete, and what is free goes back. Frees that a capture has put off meet
  // the first call, and are complete at the second. Those that no event could mark are complete for
  // whoever is out of memory.
  void empty() {
    for (int i = 0; i < 2; ++i) {
      rig.allocator.emptyCache();
      rig.sim().synchronizeDevice().orThrow();
    }
    if (nowOf(rig.allocator, Stat::kActive) != std::int64_t(held_.size())) {
      ++stuck;
      try {
        rig.allocator.free(rig.allocate(kGiB, stream(0)));
      } catch (const OutOfMemory&) {
      }
    }
    rig.allocator.emptyCache();
    if (ownPoolIsLeft()) rig.pools.emptyCache(program.lastPool());
    if (before_.live_pool) rig.pools.emptyCache(pool());
  }

  const Before before_;
  std::optional<MemPool> mine_;
  std::vector<void*> held_;
  Picture empty_;
};

constexpr Before kBefores[] = {{false, false}, {true, false}, {false, true}, {true, true}};

std::string describe(const char* conf, Before before) {
  return std::string(conf) + (before.live_pool ? ", live pool" : "") +
         (before.eager ? ", eager work" : "");
}

// Fails every `stride`th call of the program. How many captures that took.
std::uint64_t failEachCall(Before before, const char* conf, ErrorKind kind, std::uint64_t stride) {
  std::optional<Ground> ground;
  std::uint64_t captures = 0, nth = 1;
  for (bool met = true; met; nth += stride, ++captures) {
    INFO(describe(conf, before) << ", call " << nth);
    if (captures % 100 == 0) ground.emplace(before, conf);
    ground->tryOne([&] {
      ground->rig.sim().faults().failNthOfAll(nth, kind);
      ground->program.run(ground->pool());
    });
    CHECK(ground->unwound);
    met = ground->met;
    if (captures % 4 == 0) ground->tryAgain();
  }
  CHECK(nth > 300);  // it makes enough calls to be worth it
  return captures;
}

}  // namespace

TEST_CASE("any one device call of a capture may fail, and nothing of it is left", "[pools][long]") {
  std::uint64_t captures = 0;
  for (const char* conf : kConfs) {
    const std::uint64_t stride = kSlowBuild ? 61 : conf == kConfs[0] ? 1 : 3;
    for (const Before before : kBefores) {
      const bool other = before.live_pool == before.eager;
      captures +=
          failEachCall(before, conf, other ? ErrorKind::kOther : ErrorKind::kOutOfMemory, stride);
    }
  }
  CHECK((kSlowBuild || captures > 2'000));
}

TEST_CASE("a capture may be abandoned at any operation, and nothing of it is left",
          "[pools][long]") {
  for (const Before before : kBefores) {
    Ground ground(before, kConfs[0]);
    for (int at = 0; at <= CaptureProgram::kOperations + 1; at += kSlowBuild ? 17 : 1) {
      INFO(describe(kConfs[0], before) << ", operation " << at);
      ground.tryOne([&] { ground.program.run(ground.pool(), at); });
      CHECK(ground.met);
      CHECK(ground.unwound);
      // With blocks that outlive it: what they lie in goes back when they are freed.
      ground.tryOne([&] { ground.program.run(ground.pool(), at, true); });
      CHECK(ground.met);
      if (at % 10 == 0) ground.tryAgain();
    }
    CHECK(ground.stuck == 0);
  }
}

TEST_CASE("what the device would not take back from an abandoned capture goes at emptyCache",
          "[pools][long]") {
  for (const Before before : kBefores) {
    for (const Call call : {Call::kReleasePage, Call::kUnmap, Call::kFree}) {
      Ground ground(before, kConfs[0]);
      int refused = 0;
      for (int at = 20; at <= CaptureProgram::kOperations; at += kSlowBuild ? 60 : 20) {
        INFO(describe(kConfs[0], before) << ", operation " << at << ", " << callName(call));
        ground.tryOne([&] {
          ground.rig.sim().faults().failAll(call);
          ground.program.run(ground.pool(), at);
        });
        refused += ground.unwound ? 0 : 1;
        ground.tryAgain();
      }
      const bool pages = onPages(ground.rig.allocator);
      const bool asked = call == (pages ? Call::kReleasePage : Call::kFree);
      CHECK((refused > 0 || kSlowBuild || !asked));
    }
  }
}

}  // namespace cistern::test
