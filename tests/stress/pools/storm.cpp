#include "tests/stress/pools/storm.hpp"

#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "tests/stress/pools/pool_worker.hpp"
#include "tests/stress/watch.hpp"

namespace cistern::storm {
namespace {

using Clock = std::chrono::steady_clock;

// Runs one round's threads.
class Round {
 public:
  Round(World& world, std::uint64_t seed) : world_(world), seed_(seed) {}

  void run(std::size_t threads, Clock::time_point end) {
    std::vector<std::thread> slots;
    for (std::size_t i = 0; i < threads; ++i) {
      slots.emplace_back([this, i, end] { keepAlive(i, end); });
    }
    for (std::thread& slot : slots) slot.join();
  }

 private:
  // One thread after another.
  void keepAlive(std::size_t slot, Clock::time_point end) {
    Random random(seed_ * 1'000 + slot);
    std::uint64_t left = world_.config.operations;
    while (left > 0 && Clock::now() < end) {
      const std::uint64_t steps = std::min(left, 50 + random.below(800));
      const std::uint64_t seed = random.next();
      std::thread([&] { live(slot, seed, steps, end); }).join();
      left -= steps;
    }
  }

  void live(std::size_t slot, std::uint64_t seed, std::uint64_t steps, Clock::time_point end) try {
    Log log;
    const stress::Watched watched("thread", slot);
    world_.counts.threads += 1;
    Worker worker(world_, seed);
    while (steps-- > 0 && Clock::now() < end) worker.step();
    log.begin("the thread ends");
  } catch (const std::exception& error) {
    violation(std::string("a verb threw: ") + error.what());
  }

  World& world_;
  const std::uint64_t seed_;
};

}  // namespace

void run(std::chrono::milliseconds length, std::uint64_t seed, std::size_t threads,
         std::uint64_t rounds, Counts& counts) {
  const Clock::time_point end = Clock::now() + length;
  for (; Clock::now() < end && (rounds == 0 || counts.rounds < rounds); ++seed) {
    setRound(seed, threads);
    World world(seed, threads, counts);
    Round(world, seed).run(threads, end);
    Log log;
    log.begin("the end of a round");
    try {
      world.finish();
    } catch (const std::exception& error) {
      violation(std::string("at the end of a round, a verb threw: ") + error.what());
    }
  }
}

void print(const Counts& c) {
  fmt::print(
      "{} rounds, {} threads, {} operations: {} allocations, {} of them refused, {} in host "
      "memory, "
      "{} pieces of work; "
      "{} pools; {} captures, {} abandoned, {} broken, {} unannounced, {} bodies, {} "
      "replays; {} checkpoints "
      "restored, {} not; {} streams replaced, {} faults planned, {} audits, {} children; {} untold "
      "uses, {} pinned blocks, {} requests without host memory; {} imports, {} reads through them, "
      "{} callbacks, {} trainings\n",
      c.rounds.load(), c.threads.load(), c.operations.load(), c.allocations.load(),
      c.refused.load(), c.in_host.load(), c.touched.load(), c.pools.load(), c.captures.load(),
      c.abandoned.load(), c.broken.load(), c.unannounced.load(), c.bodies.load(), c.replays.load(),
      c.restored.load(), c.not_restored.load(), c.streams.load(), c.faults.load(), c.audits.load(),
      c.children.load(), c.untold.load(), c.pinned.load(), c.host_failures.load(), c.imports.load(),
      c.shared_reads.load(), c.callbacks.load(), c.trainings.load());
}

}  // namespace cistern::storm
