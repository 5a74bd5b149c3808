// The cost of a history: nanoseconds for an event, in memory and to a file, with stacks and
// without, on one thread and on several. And what a snapshot costs: nanoseconds for a block, and
// how long it stops a thread that allocates. See docs/history.md.
//
// bench_recording [--device=BACKEND]    a backend of openDevice(); the simulated device without it
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bench/harness/command_line.hpp"
#include "cistern/allocator.hpp"

namespace cistern::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPairs = 50'000;  ///< of a thread
constexpr std::size_t kLive = 64;       ///< blocks that a thread has
constexpr std::size_t kDepth = 24;      ///< frames below an allocation
constexpr std::size_t kSnapshotBlocks = 1'000'000;
constexpr int kRounds = 5;

double nanoseconds(Clock::duration taken) {
  return double(std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count());
}

// A stack as deep as that of a program: each of these frames is one of its functions.
[[gnu::noinline]] void* allocateBelow(CachingAllocator& allocator, std::size_t bytes, Stream stream,
                                      std::size_t depth) {
  void* const block = depth == 0 ? allocator.allocate(bytes, stream)
                                 : allocateBelow(allocator, bytes, stream, depth - 1);
  asm volatile("" : : "r"(block) : "memory");  // no tail call
  return block;
}

/// One thread: a random one of its blocks goes, and another comes.
void churn(CachingAllocator& allocator, Stream stream, unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<void*> live(kLive);
  for (std::size_t i = 0; i < kPairs; ++i) {
    void*& block = live[random() % kLive];
    allocator.free(block);
    block = allocateBelow(allocator, 512 + random() % (64 * kKiB), stream, kDepth);
  }
  for (void* block : live) allocator.free(block);
}

/// The median, over the rounds, of the time that an allocation and its free take a thread.
double pairTime(CachingAllocator& allocator, const std::vector<Stream>& streams) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const Clock::time_point start = Clock::now();
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < streams.size(); ++i)
      threads.emplace_back([&, i] { churn(allocator, streams[i], unsigned(i + 1)); });
    for (std::thread& thread : threads) thread.join();
    rounds.push_back(nanoseconds(Clock::now() - start) / kPairs);
  }
  std::ranges::nth_element(rounds, rounds.begin() + kRounds / 2);
  return rounds[kRounds / 2];
}

struct Recording {
  const char* name;
  bool on, file, stacks;
};
constexpr Recording kRecordings[] = {{"off", false, false, false},
                                     {"in memory", true, false, false},
                                     {"in memory, with stacks", true, false, true},
                                     {"to a file", true, true, false},
                                     {"to a file, with stacks", true, true, true}};

void measureEvents(Device& device) {
  fmt::print("{:<26}{:>14}{:>14}{:>14}\n", "ns an allocation and free", "1 thread", "2 threads",
             "8 threads");
  const std::string file =
      std::filesystem::temp_directory_path() /
      fmt::format("bench_recording_{}", Clock::now().time_since_epoch().count());
  for (const Recording& recording : kRecordings) {
    fmt::print("{:<26}", recording.name);
    for (const std::size_t threads : {1, 2, 8}) {
      CachingAllocator allocator(device, Options());
      std::vector<Stream> streams;
      for (std::size_t i = 0; i < threads; ++i) streams.push_back(device.createStream().orThrow());
      HistorySettings settings;
      if (recording.file) settings.file = file;
      if (recording.stacks) settings.stacks = Stacks::kAllocations;
      if (recording.on) allocator.recordHistory(settings);
      fmt::print("{:>14.0f}", pairTime(allocator, streams));
      std::fflush(stdout);
      allocator.stopHistory();
      for (const Stream stream : streams) {
        allocator.forgetStream(stream);
        device.destroyStream(stream).orThrow();
      }
    }
    fmt::print("\n");
  }
  std::filesystem::remove(file);
}

/// A thread that allocates and frees, and remembers its slowest pair.
class Victim {
 public:
  explicit Victim(CachingAllocator& allocator)
      : thread_([this, &allocator] {
          while (!stop_) {
            const Clock::time_point start = Clock::now();
            allocator.free(allocator.allocate(700, Stream{}));
            slowest_ = std::max<double>(slowest_, nanoseconds(Clock::now() - start));
          }
        }) {}
  ~Victim() {
    stop_ = true;
    thread_.join();
  }
  /// Since the last call, in ms.
  double takeSlowest() { return slowest_.exchange(0) / 1e6; }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<double> slowest_{0};
  std::thread thread_;
};

void measureSnapshots(Device& device) {
  CachingAllocator allocator(device, Options());
  std::vector<void*> blocks;
  std::minstd_rand random(1);
  for (std::size_t i = 0; i < kSnapshotBlocks; ++i)
    blocks.push_back(allocator.allocate(1 + random() % 4096, Stream{}));
  std::ranges::shuffle(blocks, random);
  fmt::print("\n{:<26}{:>14}{:>14}{:>14}\n", "snapshot of 1,000,000", "ns a block", "slowest, ms",
             "without, ms");
  Victim victim(allocator);
  for (int round = 0; round < kRounds; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const double without = victim.takeSlowest();
    const Clock::time_point start = Clock::now();
    const Snapshot snapshot = allocator.snapshot();
    const double taken = nanoseconds(Clock::now() - start);
    fmt::print("{:<26}{:>14.0f}{:>14.2f}{:>14.2f}\n", "", taken / double(kSnapshotBlocks),
               victim.takeSlowest(), without);
  }
  for (void* block : blocks) allocator.free(block);
}

void run(CommandLine& line) {
  const std::string backend = line.takeOr("device", "sim");
  line.requireAllTaken("--device=BACKEND");
  const auto device = openDevice(backend, 0);
  measureEvents(*device);
  measureSnapshots(*device);
}

}  // namespace
}  // namespace cistern::bench

int main(int argc, char** argv) {
  return cistern::bench::runProgram(argc, argv, cistern::bench::run);
}
