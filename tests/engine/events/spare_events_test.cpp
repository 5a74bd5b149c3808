// Events that are used again, and what they say.
#include "allocator/engine/events/spare_events.hpp"

#include <new>

#include "tests/engine/engine_support.hpp"
#include "tests/support/host_memory/host_memory.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

using EventAnswer = SpareEvents::Answer;

struct EventRig {
  SharedEvent recorded(Stream stream) {
    SharedEvent event = events.take().orThrow();
    sim.recordEvent(*event, stream).orThrow();
    return event;
  }
  Stream busyStream(std::uint64_t nanoseconds) {
    const Stream stream = sim.createStream().orThrow();
    sim.launch(stream, {"work", {}, nanoseconds, nullptr}).orThrow();
    return stream;
  }

  sim::SimDevice sim{simOf(kGiB)};
  SpareEvents events{sim};
};

}  // namespace

TEST_CASE("an event is used again once nobody holds it, and not before", "[engine][part]") {
  EventRig rig;
  SharedEvent first = rig.events.take().orThrow();
  const SharedEvent also_first = first, second = rig.events.take().orThrow();
  CHECK(*first != *second);
  const Event was = *first;
  first = nullptr;
  CHECK(*rig.events.take().orThrow() != was);
  CHECK(countOf(rig.sim, Call::kCreateEvent) == 3);
  const SharedEvent third = rig.events.take().orThrow();
  CHECK(countOf(rig.sim, Call::kCreateEvent) == 3);
  CHECK(*also_first == was);
}

TEST_CASE("a pool destroys all the events that it has made", "[engine][part]") {
  sim::SimDevice sim(simOf(kGiB));
  {
    SpareEvents events(sim);
    std::vector<SharedEvent> held;
    for (int i = 0; i < 10; ++i) held.push_back(events.take().orThrow());
  }
  CHECK(countOf(sim, Call::kCreateEvent) == 10);
  CHECK(countOf(sim, Call::kDestroyEvent) == 10);
}

TEST_CASE("an event is reached when the work before it is, asked or waited for", "[engine][part]") {
  EventRig rig;
  const SharedEvent asked = rig.recorded(rig.busyStream(kLongNs));
  CHECK(rig.events.ask(*asked) == EventAnswer::kNotYet);
  rig.sim.advanceHost(kLongNs);
  CHECK(rig.events.ask(*asked) == EventAnswer::kReached);
  const std::uint64_t before = rig.sim.now();
  const SharedEvent awaited = rig.recorded(rig.busyStream(kLongNs));
  CHECK(rig.events.waitFor(*awaited) == EventAnswer::kReached);
  CHECK(rig.sim.now() >= before + kLongNs);
}

TEST_CASE("work that never ends is not waited for", "[engine][part]") {
  EventRig rig;
  const SharedEvent event = rig.recorded(rig.busyStream(sim::kNever));
  CHECK(rig.events.ask(*event) == EventAnswer::kNotYet);
  CHECK(rig.events.waitFor(*event) == EventAnswer::kNotYet);
}

TEST_CASE("an event that a capture has recorded says nothing until it is recorded again",
          "[engine][part]") {
  EventRig rig;
  const Stream stream = rig.sim.createStream().orThrow();
  rig.sim.beginCapture(stream, CaptureMode::kRelaxed).orThrow();
  const SharedEvent event = rig.recorded(stream);
  rig.sim.destroyGraph(rig.sim.endCapture(stream).orThrow()).orThrow();
  CHECK(rig.events.ask(*event) == EventAnswer::kInVain);
  CHECK(rig.events.waitFor(*event) == EventAnswer::kInVain);
  rig.sim.recordEvent(*event, stream).orThrow();
  CHECK(rig.events.ask(*event) == EventAnswer::kReached);
}

TEST_CASE("a device that does not answer has not said that an event is reached", "[engine][part]") {
  EventRig rig;
  const SharedEvent event = rig.recorded(rig.busyStream(1));
  rig.sim.advanceHost(kLongNs);
  rig.sim.faults().failNth(Call::kQueryEvent, 1, ErrorKind::kOther);
  CHECK(rig.events.ask(*event) == EventAnswer::kNotYet);
  CHECK(rig.events.ask(*event) == EventAnswer::kReached);
}

#if defined(CISTERN_COUNTS_HOST_MEMORY)

TEST_CASE("where there is no host memory there is no event, and nothing has changed",
          "[engine][part]") {
  EventRig rig;
  std::vector<SharedEvent> held;  // the pool makes room for several at a time
  for (std::size_t count = 0; count < 100; ++count) {
    {
      const AtHostAllocations none([] { throw std::bad_alloc(); });
      CHECK_FALSE(rig.events.take().ok());
    }
    CHECK(countOf(rig.sim, Call::kCreateEvent) == count);
    held.push_back(rig.events.take().orThrow());
  }
}

#endif

TEST_CASE("threads never share an event that they did not give each other",
          "[engine][part][threads]") {
  EventRig rig;
  std::array<std::atomic<int>, 64> holders{};
  std::atomic<int> shared{0};
  constexpr std::size_t kThreads = 4;
  onThreads(kThreads, [&] {
    for (int i = 0; i < 500; ++i) {
      const SharedEvent event = rig.events.take().orThrow();
      std::atomic<int>& holder = holders.at(event->raw % holders.size());
      shared += holder.fetch_add(1) != 0;
      --holder;
    }
  });
  CHECK(shared == 0);
  CHECK(countOf(rig.sim, Call::kCreateEvent) <= kThreads);
}

}  // namespace cistern::test
