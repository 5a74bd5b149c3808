// Many threads do random things with one allocator after another until the time is over or a
// promise is found broken. What each thread does follows from the seed; how they meet does not.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <exception>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "tests/stress/pools/storm.hpp"
#include "tests/stress/watch.hpp"
#include "tests/stress/worker.hpp"

namespace cistern::stress {
namespace {

using Clock = std::chrono::steady_clock;

/// The threads, and the world that they are in. A world ends while they live on, some of them just
/// ending too, and they go on to the next.
class Program {
 public:
  Program(std::size_t threads, std::size_t streams, std::uint64_t seed)
      : streams_(streams),
        first_seed_(seed),
        seed_(seed),
        slots_(threads),
        meeting_(std::ptrdiff_t(threads) + 1) {}

  void run(Clock::duration length) {
    const Clock::time_point end = Clock::now() + length;
    world_ = nextWorld();
    std::vector<std::thread> slots;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      slots.emplace_back([this, i] { keepAlive(i); });
    }
    while (!over_) {  // what they look at: the time may be over while a world is made
      doing("lets the threads work");
      const auto of_a_world = std::chrono::milliseconds(500 + seed_ * 37 % 1'500);
      std::this_thread::sleep_until(std::min(end, Clock::now() + of_a_world));
      closing_ = true;
      doing("waits for the threads to leave the world");
      meeting_.arrive_and_wait();
      over_ = Clock::now() >= end;  // while all wait: who has still to look sees the same
      doing("takes the world down");
      world_.reset();
      if (!over_) world_ = nextWorld();
      closing_ = false;
      meeting_.arrive_and_wait();
    }
    doing("waits for the threads to end");
    for (std::thread& slot : slots) slot.join();
  }
  const Counts& counts() const { return counts_; }

 private:
  /// Whether the thread that ended had left a world that is closing, and not come to the next.
  struct Slot {
    bool between_worlds = false;
  };

  std::unique_ptr<World> nextWorld() { return std::make_unique<World>(seed_++, streams_, counts_); }

  // One thread after another.
  void keepAlive(std::size_t slot) {
    std::mt19937_64 random(first_seed_ * 1'000 + slot);
    bool done = false;
    while (!done) {
      counts_.threads += 1;
      const std::uint64_t seed = random();
      std::thread([&, slot] {
        const Watched watched("thread", slot);
        done = live(slots_[slot], seed);
      }).join();
    }
  }

  // True when the program is over.
  bool live(Slot& slot, std::uint64_t seed) try {
    std::mt19937_64 random(seed);
    std::uint64_t left = 1'000 + random() % 20'000;
    while (left > 0) {
      if (slot.between_worlds) {
        doing("waits for the next world");
        meeting_.arrive_and_wait();
        slot.between_worlds = false;
        if (over_) return true;
      }
      left -= inTheWorld(random(), left);
      if (!closing_) continue;
      doing("has left the world");
      meeting_.arrive_and_wait();
      slot.between_worlds = true;
      if (random() % 2 == 0) return false;  // while the world is taken down
    }
    return false;
  } catch (const std::exception& error) {
    violation(error.what());
  }

  std::uint64_t inTheWorld(std::uint64_t seed, std::uint64_t most) {
    Worker worker(*world_, seed);
    std::uint64_t steps = 0;
    while (steps < most && !closing_.load(std::memory_order_relaxed)) {
      worker.step();
      ++steps;
    }
    counts_.steps += steps;
    return steps;
  }

  const std::size_t streams_;
  const std::uint64_t first_seed_;
  std::uint64_t seed_;  ///< of the next world
  std::vector<Slot> slots_;
  std::barrier<> meeting_;
  std::atomic<bool> closing_{false}, over_{false};
  std::unique_ptr<World> world_;
  Counts counts_;
};

void print(const Counts& c) {
  fmt::print(
      "{} worlds, {} threads, {} steps: {} allocations, {} of them refused; {} blocks passed "
      "on, {} uses recorded, {} streams replaced, {} pools; emptied {} times, {} audits, {} "
      "trainings\n",
      c.rounds.load(), c.threads.load(), c.steps.load(), c.allocations.load(), c.refused.load(),
      c.passed_on.load(), c.recorded.load(), c.streams.load(), c.pools.load(), c.emptied.load(),
      c.audits.load(), c.trainings.load());
}

}  // namespace
}  // namespace cistern::stress

int main(int argc, char** argv) {
  double minutes = 0, seconds = 0, grace = 60;
  std::size_t threads = 0, streams = 8;
  std::uint64_t rounds = 0, seed = std::random_device()();
  std::string storm = "all";
  CLI::App app("Random operations by many threads on the simulated device.");
  app.add_option("--minutes", minutes, "how long")->check(CLI::NonNegativeNumber);
  app.add_option("--seconds", seconds, "how long, beside the minutes")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--grace", grace, "seconds that it may take to end when that time is over")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", seed, "what the threads do follows from it");
  app.add_option("--threads", threads, "how many; with 1, pools' storm repeats itself")
      ->check(CLI::Range(1, 1'000));
  app.add_option("--rounds", rounds, "of pools' storm at most; 0: until the time is over");
  app.add_option("--streams", streams, "of the engine's storm")->check(CLI::Range(1, 1'000));
  app.add_option("--storm", storm, "engine, pools, or one after the other: all")
      ->check(CLI::IsMember({"engine", "pools", "all"}));
  CLI11_PARSE(app, argc, argv);
  if (minutes == 0 && seconds == 0) minutes = 1;
  seed %= std::uint64_t{1} << 40;
  fmt::print("seed {}\n", seed);
  std::fflush(stdout);
  std::chrono::milliseconds length(std::int64_t((minutes * 60 + seconds) * 1'000));
  const std::chrono::milliseconds more(std::int64_t(grace * 1'000));
  const cistern::stress::Watched watched("main", 0);
  const cistern::stress::Deadline deadline(cistern::stress::Deadline::Clock::now() + length + more);
  if (storm == "all") length /= 2;
  std::uint64_t steps = 0;
  if (storm != "pools") {
    cistern::stress::Program program(threads == 0 ? 16 : threads, streams, seed);
    program.run(length);
    cistern::stress::print(program.counts());
    steps += program.counts().steps;
    std::fflush(stdout);
  }
  if (storm != "engine") {
    cistern::storm::Counts counts;
    cistern::storm::run(length, seed, threads == 0 ? 6 : threads, rounds, counts);
    cistern::storm::print(counts);
    steps += counts.operations;
  }
  fmt::print("seed {}: {} steps, no fault\n", seed, steps);
}
