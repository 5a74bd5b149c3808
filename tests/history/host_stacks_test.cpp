// The stacks of C++ programs, and those of front ends that gather their own.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "interop/recording/code_lines.hpp"
#include "tests/history/history_support.hpp"

// Not in Cistern's namespace, whose frames leave stacks.
namespace program {

[[gnu::noinline]] void* allocateFrom(cistern::CachingAllocator& allocator) {
  void* const block = allocator.allocate(1000, cistern::Stream{});
  asm volatile("" : : "r"(block) : "memory");
  return block;
}

}  // namespace program

namespace cistern::test {
namespace {

using recording::Event;
using recording::EventKind;
using recording::Recording;

std::vector<recording::Frame> framesOf(const Recording& read, std::uint32_t stack) {
  std::vector<recording::Frame> frames;
  for (; stack != 0; stack = read.stacks[stack].parent)
    frames.push_back(read.frames[read.stacks[stack].frame]);
  return frames;
}

HistorySettings withStacks() {
  HistorySettings settings;
  settings.stacks = Stacks::kAllocations;
  return settings;
}

TEST_CASE("an allocation has its stack, and equal stacks are one") {
  SimRig rig;
  rig.allocator.recordHistory(withStacks());
  for (int i = 0; i < 3; ++i) rig.allocator.free(program::allocateFrom(rig.allocator));
  void* const other = rig.allocator.allocate(1000, Stream{});
  // A build that is not optimised calls the gatherer from several places. Those frames leave.
  std::vector<Recording> all{dumped(rig.allocator)};
  recording::nameCodeLines(all);
  const Recording& read = all[0];
  std::vector<std::uint32_t> stacks;
  for (const Event& event : read.events) {
    if (event.kind == EventKind::kAllocate) stacks.push_back(read.placeOf(event).stack);
  }
  REQUIRE(stacks.size() == 4);
  CHECK(stacks[0] != 0);
  CHECK(stacks[1] == stacks[0]);
  CHECK(stacks[3] != stacks[0]);
  const std::vector<recording::Frame> frames = framesOf(read, stacks[0]);
  REQUIRE(frames.size() > 2);
  for (const recording::Frame& frame : frames) CHECK_FALSE(frame.file.empty());
  rig.allocator.free(other);
}

TEST_CASE("a front end's gatherer names its frames, and each once") {
  struct Scripted final : StackGatherer {
    std::size_t gather(std::uintptr_t* words, std::size_t most) noexcept override {
      CHECK(most == kMostFrames);
      words[0] = depth;
      words[1] = 7;
      return 2;
    }
    StackFrame frameOf(std::uintptr_t word) override {
      ++named;
      return {"function " + std::to_string(word), "script.py", std::uint32_t(word)};
    }
    std::uintptr_t depth = 1;
    int named = 0;
  };
  SimRig rig;
  const auto gatherer = std::make_shared<Scripted>();
  HistorySettings settings = withStacks();
  settings.gatherer = gatherer;
  rig.allocator.recordHistory(settings);
  void* const one = rig.allocator.allocate(1000, Stream{});
  gatherer->depth = 2;
  void* const two = rig.allocator.allocate(1000, Stream{});
  const Recording read = dumped(rig.allocator);
  CHECK(gatherer->named == 3);
  REQUIRE(read.frames.size() == 3);
  const std::vector<recording::Frame> last = framesOf(read, std::uint32_t(read.stacks.size() - 1));
  REQUIRE(last.size() == 2);
  CHECK(last[0].function == "function 2");
  CHECK(last[1].function == "function 7");
  CHECK(last[1].line == 7);
  CHECK(last[1].file == "script.py");
  rig.allocator.free(one);
  rig.allocator.free(two);
}

TEST_CASE("a gatherer lives as long as its history") {
  struct Counted final : StackGatherer {
    explicit Counted(bool& gone) : gone_(gone) {}
    ~Counted() override { gone_ = true; }
    std::size_t gather(std::uintptr_t*, std::size_t) noexcept override { return 0; }
    StackFrame frameOf(std::uintptr_t) override { return {}; }
    bool& gone_;
  };
  bool gone = false;
  SimRig rig;
  HistorySettings settings = withStacks();
  settings.gatherer = std::make_shared<Counted>(gone);
  rig.allocator.recordHistory(settings);
  settings = {};
  rig.allocator.free(rig.allocator.allocate(1, Stream{}));
  CHECK_FALSE(gone);
  rig.allocator.stopHistory();
  CHECK(gone);
}

TEST_CASE("a stack that was gathered for one recording has no number in the next") {
  struct Restarting final : StackGatherer {
    std::size_t gather(std::uintptr_t* words, std::size_t most) noexcept override {
      for (std::size_t i = 0; i < most; ++i) words[i] = i + 1;
      if (CachingAllocator* const on = std::exchange(restarts, nullptr)) on->recordHistory({});
      return most;
    }
    StackFrame frameOf(std::uintptr_t word) override { return {"f", "file.cpp", unsigned(word)}; }
    CachingAllocator* restarts = nullptr;
  };
  SimRig rig;
  const auto gatherer = std::make_shared<Restarting>();
  HistorySettings settings = withStacks();
  settings.gatherer = gatherer;
  rig.allocator.recordHistory(settings);
  gatherer->restarts = &rig.allocator;
  void* const block = rig.allocator.allocate(1000, Stream{});
  const Recording read = dumped(rig.allocator);
  REQUIRE(read.allocations == 1);
  CHECK(framesOf(read, read.placeOf(read.events.back()).stack).empty());
  rig.allocator.free(block);
}

TEST_CASE("a frame that its front end cannot name says so, and the history stays") {
  struct Throwing final : StackGatherer {
    std::size_t gather(std::uintptr_t* words, std::size_t) noexcept override {
      words[0] = 0xbad;
      return 1;
    }
    StackFrame frameOf(std::uintptr_t) override { throw std::runtime_error("no name"); }
  };
  SimRig rig;
  HistorySettings settings = withStacks();
  settings.gatherer = std::make_shared<Throwing>();
  rig.allocator.recordHistory(settings);
  void* const block = rig.allocator.allocate(1000, Stream{});
  const Recording read = dumped(rig.allocator);
  REQUIRE(read.frames.size() == 1);
  CHECK(read.frames[0].function.find("0xbad") != std::string::npos);
  rig.allocator.free(block);
}

}  // namespace
}  // namespace cistern::test
