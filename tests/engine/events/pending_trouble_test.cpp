// Pending frees where the device, or the host's memory, says no: nothing leaves too early, and
// nothing stays for ever.
#include <algorithm>
#include <new>

#include "tests/engine/events/pending_support.hpp"
#include "tests/support/host_memory/host_memory.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {

TEST_CASE("a block whose event is refused gets another at the next poll", "[engine][part]") {
  for (const Call call : {Call::kCreateEvent, Call::kRecordEvent, Call::kCaptureInfo}) {
    PendingRig rig;
    const Stream user = rig.busyStream();
    rig.sim.faults().failNth(call, 1, ErrorKind::kOther);
    Block& block = rig.freed({user});
    CHECK(rig.sim.faults().hits(call) == 1);
    CHECK_FALSE(rig.pending.poll());
    rig.sim.advanceHost(2 * kLongNs);
    CHECK(rig.pending.poll());
    CHECK(rig.released() == Blocks{&block});
    CHECK(waits(rig.sim) == 0);
  }
}

TEST_CASE("an event that is refused keeps what hung on it before", "[engine][part]") {
  PendingRig rig;
  const Stream user = rig.busyStream();
  Block& first = rig.freed({user});
  rig.sim.faults().failNth(Call::kRecordEvent, 1, ErrorKind::kOther);
  Block& second = rig.freed({user});
  rig.sim.advanceHost(2 * kLongNs);
  std::vector<Block*> all;
  for (int i = 0; i < 2; ++i) {
    (void)rig.pending.poll();
    for (Block* block : rig.released()) all.push_back(block);
  }
  std::sort(all.begin(), all.end());
  CHECK(all == (&first < &second ? Blocks{&first, &second} : Blocks{&second, &first}));
}

TEST_CASE("where no event is to be had at all the host waits for the device", "[engine][part]") {
  PendingRig rig;
  rig.sim.faults().failAll(Call::kCreateEvent, ErrorKind::kOther);
  Block& block = rig.freed({rig.busyStream()});
  CHECK_FALSE(rig.pending.poll());
  CHECK(rig.pending.wait());
  CHECK(rig.released() == Blocks{&block});
  CHECK(rig.calls(Call::kSynchronizeDevice) == 1);
}

TEST_CASE("a stream that was destroyed without notice is waited for with the device",
          "[engine][part]") {
  PendingRig rig;
  const Stream user = rig.busyStream();
  rig.sim.destroyStream(user).orThrow();
  Block& block = rig.freed({user});
  rig.sim.advanceHost(2 * kLongNs);
  CHECK_FALSE(rig.pending.poll());
  rig.pending.waitForStuck();
  CHECK(rig.released() == Blocks{&block});
  CHECK(rig.calls(Call::kSynchronizeDevice) == 1);
}

TEST_CASE("a block of which nobody knows who uses it waits for the device, and may be anyone's",
          "[engine][part]") {
  PendingRig rig;
  (void)rig.busyStream();
  Block& block = rig.pendingBlock();
  rig.pending.addUnknown(block);
  rig.sim.advanceHost(2 * kLongNs);
  CHECK_FALSE(rig.pending.poll());
  CHECK(rig.pending.waiting() == 1);
  rig.sim.faults().failAll(Call::kSynchronizeDevice, ErrorKind::kOther);
  CHECK_FALSE(rig.pending.wait());
  rig.sim.faults().clear();
  CHECK(rig.pending.waiting() == 1);
  CHECK(rig.pending.wait());
  CHECK(rig.released() == Blocks{&block});
  CHECK((rig.last.all && rig.last.captured));
}

TEST_CASE("waiting takes one stream at a time, and passes over what never ends", "[engine][part]") {
  PendingRig rig;
  const Stream stuck = rig.busyStream(sim::kNever);
  const Stream user = rig.busyStream(), later = rig.busyStream(5 * kLongNs);
  rig.freed({stuck});
  Block& block = rig.freed({user});
  Block& last = rig.freed({later});
  const std::uint64_t before = rig.sim.now();
  CHECK(rig.pending.wait());
  CHECK(rig.released() == Blocks{&block});
  CHECK(rig.sim.now() < before + 2 * kLongNs);
  CHECK(rig.pending.wait());
  CHECK(rig.released() == Blocks{&last});
  CHECK_FALSE(rig.pending.wait());
  CHECK(rig.pending.waiting() == 1);
}

#if defined(CISTERN_COUNTS_HOST_MEMORY)

TEST_CASE("where there is no host memory to say what a block waits for, it waits for the device",
          "[engine][part]") {
  PendingRig rig;
  const Stream user = rig.busyStream();
  Block& block = rig.pendingBlock();
  const StreamUses users(user);
  {
    const AtHostAllocations none([] { throw std::bad_alloc(); });
    rig.pending.add({&block, false, false}, users);
  }
  rig.sim.advanceHost(2 * kLongNs);
  CHECK_FALSE(rig.pending.poll());
  CHECK(rig.pending.wait());
  CHECK(rig.released() == Blocks{&block});
}

#endif

TEST_CASE("blocks that several threads add and poll for are released once each",
          "[engine][part][threads]") {
  constexpr std::size_t kEach = 100;
  PendingRig rig;
  const Stream users[] = {rig.stream(), rig.stream()};
  std::vector<Block*> expected;
  for (std::size_t i = 0; i < 3 * kEach; ++i) expected.push_back(&rig.pendingBlock());
  onThreads(3, [&](std::size_t thread) {
    for (std::size_t i = thread * kEach; i < (thread + 1) * kEach; ++i) {
      StreamUses both(users[0]);
      both.add(users[1]);
      rig.pending.add({expected[i], false, false}, both);
      (void)rig.pending.poll();
    }
  });
  (void)rig.pending.poll();
  std::vector<Block*> out = rig.released();
  std::sort(out.begin(), out.end());
  std::sort(expected.begin(), expected.end());
  CHECK(out == expected);
  CHECK(rig.pending.waiting() == 0);
}

}  // namespace cistern::test
