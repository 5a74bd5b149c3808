// Blocks that were freed while other streams use them: when they leave, and what is asked for it.
#include "allocator/engine/events/pending_frees.hpp"

#include <atomic>
#include <thread>

#include "tests/engine/events/pending_support.hpp"

namespace cistern::test {

TEST_CASE("a block leaves when the last of the streams that use it has come so far",
          "[engine][part]") {
  PendingRig rig;
  const Stream quick = rig.busyStream(kLongNs), slow = rig.busyStream(3 * kLongNs);
  StreamUses users(quick);
  users.add(slow);
  Block& block = rig.freed(users);
  CHECK(rig.pending.waiting() == 1);
  rig.sim.advanceHost(2 * kLongNs);
  CHECK_FALSE(rig.pending.poll());
  CHECK(rig.released().empty());
  rig.sim.advanceHost(2 * kLongNs);
  CHECK(rig.pending.poll());
  CHECK(rig.released() == Blocks{&block});
  CHECK(rig.pending.waiting() == 0);
  CHECK_FALSE(rig.pending.poll());
}

TEST_CASE("each free has an event of its own, and leaves when that is complete", "[engine][part]") {
  PendingRig rig;
  const Stream user = rig.busyStream(kLongNs);
  Block& first = rig.freed({user});
  rig.work(user, kLongNs);
  Block& second = rig.freed({user});
  CHECK(rig.calls(Call::kRecordEvent) == 2);
  rig.sim.advanceHost(kLongNs + kLongNs / 2);
  CHECK(rig.pending.poll());
  CHECK(rig.released() == Blocks{&first});
  rig.sim.advanceHost(kLongNs);
  CHECK(rig.pending.poll());
  CHECK(rig.released() == Blocks{&second});
}

TEST_CASE("an event is asked only when the one before it is complete", "[engine][part]") {
  PendingRig rig;
  const Stream user = rig.busyStream(kLongNs);
  for (int i = 0; i < 5; ++i) {
    rig.freed({user});
    (void)rig.pending.poll();
  }
  const std::uint64_t asked = rig.calls(Call::kQueryEvent);
  (void)rig.pending.poll();
  CHECK(rig.calls(Call::kQueryEvent) == asked + 1);
  rig.sim.advanceHost(2 * kLongNs);
  CHECK(rig.pending.poll());
  CHECK(rig.released().size() == 5);
  CHECK(rig.calls(Call::kCreateEvent) == 5);
  rig.freed({user});  // the events serve again
  CHECK(rig.calls(Call::kCreateEvent) == 5);
  CHECK(rig.pending.poll());
}

TEST_CASE("a stream that has been forgotten is waited for by its end", "[engine][part]") {
  PendingRig rig;
  const Stream ending = rig.busyStream(kLongNs), ended = rig.stream();
  for (const Stream stream : {ending, ended}) {
    rig.streams.forgetStream(stream);
    rig.sim.destroyStream(stream).orThrow();
  }
  Block& over = rig.freed({ended});
  CHECK(rig.released() == Blocks{&over});  // at once
  Block& block = rig.freed({ending});
  CHECK_FALSE(rig.pending.poll());
  rig.sim.advanceHost(2 * kLongNs);
  CHECK(rig.pending.poll());
  CHECK(rig.released() == Blocks{&block});
  CHECK(rig.calls(Call::kRecordEvent) == 2);  // the ends
  CHECK(rig.sim.callsOnDeadStreams() == 0);
}

TEST_CASE("polls grow rarer while none finds anything, until there is something new",
          "[engine][part]") {
  PendingRig rig;
  const Stream user = rig.busyStream(kLongNs), stuck = rig.busyStream(sim::kNever);
  rig.freed({stuck});
  for (int i = 0; i < 16; ++i) {
    CHECK(rig.pending.backoff() == 1);
    (void)rig.pending.poll();
  }
  unsigned before = rig.pending.backoff();
  for (int i = 0; i < 10; ++i) {
    (void)rig.pending.poll();
    CHECK(rig.pending.backoff() == std::min(2 * before, 64u));
    before = rig.pending.backoff();
  }
  rig.freed({user});
  CHECK(rig.pending.backoff() == 1);
  for (int i = 0; i < 30; ++i) (void)rig.pending.poll();
  CHECK(rig.pending.backoff() == 64);
  rig.sim.advanceHost(2 * kLongNs);
  CHECK(rig.pending.poll());
  CHECK(rig.pending.backoff() == 1);
}

TEST_CASE("a bounded poll asks so many streams, and the next poll goes on with others",
          "[engine][part]") {
  PendingRig rig;
  for (int i = 0; i < 5; ++i) rig.freed({rig.busyStream(kLongNs)});
  rig.freed({rig.busyStream(sim::kNever)});
  const std::uint64_t asked = rig.calls(Call::kQueryEvent);
  CHECK_FALSE(rig.pending.poll({4, 100}));
  CHECK(rig.calls(Call::kQueryEvent) == asked + 4);
  rig.sim.advanceHost(2 * kLongNs);
  // The rest of a budget goes to the stream whose turn it is next.
  std::size_t released = 0;
  for (int polls = 0; polls < 3; ++polls) {
    const std::uint64_t before = rig.calls(Call::kQueryEvent);
    (void)rig.pending.poll({4, 100});
    CHECK(rig.calls(Call::kQueryEvent) <= before + 4);
    released += rig.released().size();
  }
  CHECK(released == 5);
}

TEST_CASE("a bounded poll ends so many uses, and the next one the rest", "[engine][part]") {
  PendingRig rig;
  const Stream user = rig.stream();
  Blocks all;
  for (int i = 0; i < 5; ++i) all.push_back(&rig.freed({user}));
  CHECK(rig.pending.poll({100, 3}));
  CHECK(rig.released() == Blocks{all[0], all[1], all[2]});
  CHECK(rig.pending.poll({1, 3}));
  CHECK(rig.released() == Blocks{all[3]});
  CHECK(rig.pending.poll({1, 3}));
  CHECK(rig.released() == Blocks{all[4]});
}

TEST_CASE("nothing is asked of the device where nothing waits", "[engine][part]") {
  PendingRig rig;
  const CallCounts before = rig.sim.callCounts();
  CHECK_FALSE(rig.pending.poll());
  rig.pending.waitForStuck();
  CHECK(rig.sim.callCounts() == before);
  CHECK_FALSE(rig.pending.wait());
  CHECK(waits(rig.sim) == 0);
}

TEST_CASE("who waits does not give up while another thread has ready blocks in hand",
          "[engine][part][threads]") {
  PendingRig rig;
  const Stream user = rig.stream();
  bool found = false;
  std::thread waiting;
  std::atomic<bool> begun{false};
  PendingFrees pending(rig.device, rig.events, rig.streams, [&](const auto& one) {
    waiting = std::thread([&] {
      begun = true;
      found = pending.wait();
    });
    while (!begun) std::this_thread::yield();
    for (int i = 0; i < 1'000; ++i) std::this_thread::yield();
    rig.noteReleased(one);
  });
  Block& block = rig.pendingBlock();
  pending.add({&block, false, false}, StreamUses(user));
  CHECK(pending.poll());
  waiting.join();
  CHECK(found);
  CHECK(pending.waiting() == 0);
  CHECK(rig.released() == Blocks{&block});
}

}  // namespace cistern::test
