// How long the slowest allocations take: four threads under a steady mixed load, a fifth that
// empties the cache every 10 ms, and a stream whose work never ends. See docs/benchmarks.md.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "allocator/device/sim/host_clock.hpp"
#include "allocator/device/sim/sim_device.hpp"
#include "bench/harness/command_line.hpp"
#include "bench/peers/roster.hpp"
#include "cistern/allocator.hpp"

namespace cistern::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Samples = std::vector<std::uint32_t>;  // ns

constexpr std::size_t kThreads = 4, kLive = 200;
constexpr std::size_t kMostSamples = std::size_t{1} << 23;  ///< a thread's
constexpr auto kEmptied = std::chrono::milliseconds(10);
constexpr double kTarget = 50;  ///< p99.9 over p50, at most

/// What is measured.
struct Subject {
  std::string name;
  std::function<void*(std::size_t bytes, std::size_t thread)> allocate;
  std::function<void(void* block, std::size_t thread)> free;
  std::function<void()> empty_cache;  ///< null: it has no such verb
};

std::uint32_t since(Clock::time_point start) {
  const auto taken = std::chrono::nanoseconds(Clock::now() - start).count();
  return std::uint32_t(std::min<std::int64_t>(taken, UINT32_MAX));
}

/// `part` of the samples took no longer. Pre: sorted.
double quantile(const Samples& sorted, double part) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1, std::size_t(double(sorted.size()) * part))];
}

/// What two looks at the clock cost with nothing between them.
double clockCost() {
  Samples samples;
  for (int i = 0; i < 100'000; ++i) samples.push_back(since(Clock::now()));
  std::sort(samples.begin(), samples.end());
  return quantile(samples, 0.5);
}

/// One thread: a random one of its live blocks goes, and another comes.
Samples load(const Subject& subject, std::size_t thread, const std::atomic<bool>& over) {
  std::mt19937_64 random(thread + 1);
  std::uniform_real_distribution<double> log_size(std::log2(512.0), 20.0);
  std::array<void*, kLive> live{};
  Samples samples;
  samples.reserve(kMostSamples);
  while (!over.load(std::memory_order_relaxed) && samples.size() < kMostSamples) {
    void*& block = live[random() % kLive];
    const auto bytes = std::size_t(std::exp2(log_size(random)));
    if (block != nullptr) subject.free(block, thread);
    const auto start = Clock::now();
    block = subject.allocate(bytes, thread);
    samples.push_back(since(start));
  }
  for (void* block : live) {
    if (block != nullptr) subject.free(block, thread);
  }
  return samples;
}

Samples measure(const Subject& subject, std::chrono::duration<double> length) {
  std::atomic<bool> over{false};
  std::array<Samples, kThreads> samples;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { samples[i] = load(subject, i, over); });
  }
  for (const auto end = Clock::now() + length; Clock::now() < end;) {
    std::this_thread::sleep_for(kEmptied);
    if (subject.empty_cache) subject.empty_cache();
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  Samples all;
  for (const Samples& each : samples) all.insert(all.end(), each.begin(), each.end());
  std::sort(all.begin(), all.end());
  return all;
}

/// Cistern on a simulated device, where a stream's work never ends, and uses blocks of the others.
class CisternTail {
 public:
  CisternTail() : device_(config()), allocator_(device_) {
    for (Stream& stream : streams_) stream = device_.createStream().orThrow();
    const Stream stuck = device_.createStream().orThrow();
    void* own = allocator_.allocate(32 << 20, stuck);
    std::vector<void*> used;
    for (Stream stream : streams_) {
      used.push_back(allocator_.allocate(1 << 20, stream));
      allocator_.recordStream(used.back(), stuck);
    }
    device_.launch(stuck, {"never ends", {}, sim::kNever, nullptr}).orThrow();
    for (void* block : used) allocator_.free(block);
    allocator_.free(own);
  }
  Subject subject() {
    return {"cistern:sim",
            [this](std::size_t bytes, std::size_t thread) {
              return allocator_.allocate(bytes, streams_[thread]);
            },
            [this](void* block, std::size_t) { allocator_.free(block); },
            [this] { allocator_.emptyCache(); }};
  }

 private:
  static sim::SimConfig config() {
    sim::SimConfig config;
    config.race_detector = false;
    return config;
  }
  sim::SimDevice device_;
  CachingAllocator allocator_;
  std::array<Stream, kThreads> streams_;
};

void printRow(const std::string& name, const Samples& sorted, double clock) {
  const auto at = [&](double part) { return std::max(1.0, quantile(sorted, part) - clock); };
  const double ratio = at(0.999) / at(0.5);
  fmt::print("| {} | {} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {:.1f} |\n", name, sorted.size(),
             at(0.5), at(0.99), at(0.999), at(1), ratio);
  if (name == "cistern:sim" && ratio > kTarget) {
    fmt::print("\np99.9 of {} is over {} times its p50\n", name, kTarget);
  }
}

void run(CommandLine& line) {
  const std::chrono::duration<double> length{double(line.takeCount("seconds").value_or(3))};
  line.requireAllTaken("--seconds=N");
  const double clock = clockCost();
  fmt::print("ns per allocate, less the clock's own {:.0f}; {} threads, {} live blocks each\n\n",
             clock, kThreads, kLive);
  fmt::print(
      "| | allocations | p50 | p99 | p99.9 | most | p99.9 / p50 |\n|---|---|---|---|---|---|"
      "---|\n");
  {
    CisternTail cistern;
    printRow("cistern:sim", measure(cistern.subject(), length), clock);
  }
  const Roster roster = makeRoster("sim", "mimalloc");
  for (const PeerEntry& entry : roster.peers) {
    const auto peer = entry.open();
    const Subject subject{
        entry.name, [&](std::size_t bytes, std::size_t) { return peer->allocate(bytes, Stream{}); },
        [&](void* block, std::size_t) { peer->free(block, Stream{}); }, nullptr};
    printRow(entry.name, measure(subject, length), clock);
  }
  for (const std::string& left_out : roster.left_out) fmt::print("left out: {}\n", left_out);
}

}  // namespace
}  // namespace cistern::bench

int main(int argc, char** argv) {
  return cistern::bench::runProgram(argc, argv, cistern::bench::run);
}
