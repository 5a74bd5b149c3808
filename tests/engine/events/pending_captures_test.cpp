// Pending frees beside captures: nothing is recorded into one, and nothing is lost by one.
#include "tests/engine/events/pending_support.hpp"

namespace cistern::test {
namespace {

/// A capture of the stream that begins right before its next record.
void captureAtRecord(PendingRig& rig, Stream stream) {
  rig.device.before = [&rig, stream](Call call) {
    if (call != Call::kRecordEvent) return;
    rig.device.before = nullptr;
    rig.beginCapture(stream);
  };
}

}  // namespace

TEST_CASE("a block that a captured stream uses gets its event after the capture",
          "[engine][part]") {
  PendingRig rig;
  const Stream user = rig.busyStream();
  rig.beginCapture(user);
  Block& block = rig.freed({user});
  for (int i = 0; i < 3; ++i) CHECK_FALSE(rig.pending.poll());
  CHECK(rig.calls(Call::kRecordEvent) == 0);
  rig.endCapture(user);  // which nothing has broken
  CHECK_FALSE(rig.pending.poll());
  CHECK(rig.calls(Call::kRecordEvent) == 1);
  rig.sim.advanceHost(2 * kLongNs);
  CHECK(rig.pending.poll());
  CHECK(rig.released() == Blocks{&block});
}

TEST_CASE("a capture that begins between the question and the event puts off the block",
          "[engine][part]") {
  PendingRig rig;
  const Stream user = rig.busyStream(), other = rig.busyStream();
  Block& before = rig.freed({user});
  captureAtRecord(rig, user);
  Block& within = rig.freed({user});
  Block& others = rig.freed({other});
  rig.sim.advanceHost(2 * kLongNs);
  CHECK(rig.pending.poll());
  CHECK(rig.released() == Blocks{&before, &others});
  rig.endCapture(user);
  CHECK(rig.pending.poll());
  CHECK(rig.released() == Blocks{&within});
}

TEST_CASE("an event that a capture has had since, begun and ended unseen, says nothing",
          "[engine][part]") {
  PendingRig rig;
  const Stream user = rig.busyStream();
  rig.device.before = [&](Call call) {
    if (call == Call::kRecordEvent) rig.beginCapture(user);
    if (call != Call::kCaptureInfo || rig.calls(Call::kRecordEvent) == 0) return;
    rig.device.before = nullptr;
    rig.endCapture(user);
  };
  Block& block = rig.freed({user});
  CHECK(rig.device.before == nullptr);
  rig.sim.advanceHost(2 * kLongNs);
  bool any = false;
  for (int i = 0; i < 3; ++i) any |= rig.pending.poll();
  CHECK(any);
  CHECK(rig.released() == Blocks{&block});
}

TEST_CASE("all that was freed in a capture gets one event for each stream, and leaves in order",
          "[engine][part]") {
  PendingRig rig;
  const Stream users[] = {rig.busyStream(), rig.busyStream(3 * kLongNs)};
  for (const Stream user : users) rig.beginCapture(user);
  Blocks all;
  for (int i = 0; i < 5; ++i) {
    StreamUses both(users[0]);
    both.add(users[1]);
    all.push_back(&rig.freed(both));
  }
  Block& alone = rig.freed({users[0]});
  const std::uint64_t asked = rig.calls(Call::kCaptureInfo);
  CHECK_FALSE(rig.pending.poll());
  CHECK(rig.calls(Call::kCaptureInfo) == asked + 2);
  for (const Stream user : users) rig.endCapture(user);
  CHECK_FALSE(rig.pending.poll());
  CHECK(rig.calls(Call::kRecordEvent) == 2);
  rig.sim.advanceHost(2 * kLongNs);
  CHECK(rig.pending.poll());
  CHECK(rig.released() == Blocks{&alone});
  rig.sim.advanceHost(2 * kLongNs);
  CHECK(rig.pending.poll());
  CHECK(rig.released() == all);
}

TEST_CASE("a free after a capture waits no longer than its own work", "[engine][part]") {
  PendingRig rig;
  const Stream user = rig.busyStream();
  rig.beginCapture(user);
  Block& within = rig.freed({user});
  rig.endCapture(user);
  Block& after = rig.freed({user});
  rig.sim.advanceHost(2 * kLongNs);
  rig.work(user, kLongNs);
  CHECK(rig.pending.poll());
  CHECK(rig.released() == Blocks{&after});
  rig.sim.advanceHost(2 * kLongNs);
  CHECK(rig.pending.poll());
  CHECK(rig.released() == Blocks{&within});
}

TEST_CASE("an event that a capture has had says nothing of all that hangs on it",
          "[engine][part]") {
  PendingRig rig;
  const Stream user = rig.busyStream();
  rig.beginCapture(user);
  const Blocks all{&rig.freed({user}), &rig.freed({user}), &rig.freed({user})};
  rig.endCapture(user);
  rig.device.before = [&](Call call) {  // another capture gets the event
    if (call == Call::kRecordEvent) rig.beginCapture(user);
    if (call != Call::kCaptureInfo || rig.calls(Call::kRecordEvent) == 0) return;
    rig.device.before = nullptr;
    rig.endCapture(user);
  };
  CHECK_FALSE(rig.pending.poll());
  CHECK(rig.device.before == nullptr);
  CHECK(rig.released().empty());
  rig.sim.advanceHost(2 * kLongNs);
  for (int i = 0; i < 2; ++i) (void)rig.pending.poll();
  CHECK(rig.released() == all);
}

TEST_CASE("all that hung on one event is over for a thread that waits, too", "[engine][part]") {
  PendingRig rig;
  const Stream user = rig.busyStream();
  rig.beginCapture(user);
  const Blocks all{&rig.freed({user}), &rig.freed({user}), &rig.freed({user})};
  rig.endCapture(user);
  for (const Block* block : all) {
    CHECK(rig.pending.wait());
    CHECK(rig.released() == Blocks{const_cast<Block*>(block)});
  }
  CHECK(rig.calls(Call::kSynchronizeEvent) == 1);
  CHECK_FALSE(rig.pending.wait());
}

TEST_CASE("who waits while a stream is captured waits for others, and then for nothing",
          "[engine][part]") {
  PendingRig rig;
  const Stream captured = rig.busyStream(), other = rig.busyStream();
  Block& kept = rig.freed({other});
  rig.beginCapture(captured);
  Block& block = rig.freed({captured});
  CHECK(rig.pending.wait());
  CHECK(rig.released() == Blocks{&kept});
  CHECK_FALSE(rig.pending.wait());
  rig.endCapture(captured);
  CHECK(rig.pending.wait());
  CHECK(rig.released() == Blocks{&block});
}

}  // namespace cistern::test
