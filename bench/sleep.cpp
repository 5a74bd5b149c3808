// bench_sleep [--bytes 8GiB] [--rounds 5] [--pause 200] [--largest 64MiB] [--free-every 2]: what
// sleep and wake take, beside one plain copy each way. A pool gets so many bytes, half of them in
// blocks under 1 MiB, all of them if no larger ones are asked for. Every second block is freed. A
// simulated device's time is its own. The pool sleeps and wakes: first with no host memory pinned,
// then in rounds with the memory kept. Between the two are so many milliseconds: the driver clears
// what was given back, and a wake within that time waits for it. Prints one table, and fails if a
// byte that it looks at is wrong.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "bench/harness/command_line.hpp"
#include "cistern/pool.hpp"
#include "cistern/sim.hpp"

namespace cistern::bench {
namespace {

using Seconds = double;

/// A simulated device's time, or else the host's.
class Clock {
 public:
  explicit Clock(Device& device) : sim_(dynamic_cast<sim::SimulatedDevice*>(&device)) {}

  template <class Work>
  Seconds operator()(Work work) const {
    const double since = now();
    work();
    return now() - since;
  }

 private:
  double now() const {
    if (sim_ != nullptr) return double(sim_->now()) / 1e9;
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(since).count();
  }

  sim::SimulatedDevice* sim_;
};

struct Mix {
  std::uint64_t bytes, largest;
  std::size_t free_every;
};

double rate(std::uint64_t bytes, Seconds took) { return double(bytes) / took / 1e9; }

double median(std::vector<double> of) {
  std::ranges::sort(of);
  return of[of.size() / 2];
}

struct Blocks {
  struct Block {
    void* at;
    std::uint64_t bytes;
  };
  /// Half of the bytes in blocks of 4 KiB to 1 MiB, half in larger ones, mixed.
  Blocks(CachingAllocator& allocator, MemPool& pool, Stream stream, const Mix& mix) {
    std::mt19937_64 random(1);
    const auto between = [&](std::uint64_t least, std::uint64_t most) {
      return least + random() % (most - least);
    };
    std::vector<Block> all;
    for (std::uint64_t small = 0, large = 0; small + large < mix.bytes;) {
      const bool is_small = mix.largest <= kMiB || small <= large;
      const std::uint64_t size = is_small
                                     ? between(4 * kKiB, std::min<std::uint64_t>(kMiB, mix.largest))
                                     : between(kMiB, mix.largest);
      (is_small ? small : large) += size;
      all.push_back({pool.allocate(size, stream), size});
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i % mix.free_every == 0) {
        allocator.free(all[i].at);
      } else {
        live.push_back(all[i]);
        live_bytes += all[i].bytes;
      }
    }
  }
  std::vector<Block> live;
  std::uint64_t live_bytes = 0;
};

/// Each block's number, in its first and its last eight bytes.
class Numbers {
 public:
  Numbers(Device& device, const Blocks& blocks, Stream stream)
      : device_(device), blocks_(blocks), stream_(stream), bytes_(blocks.live.size() * 16) {
    host_ = static_cast<std::uint64_t*>(device.hostMalloc(bytes_).orThrow());
    for (std::uint64_t i = 0; i < blocks.live.size(); ++i) host_[2 * i] = host_[2 * i + 1] = i + 1;
    forEachEnd([&](const BusCopy& word) { device_.copyIn(&word, 1, stream_).orThrow(); });
    device_.synchronizeStream(stream_).orThrow();
  }
  ~Numbers() { (void)device_.hostFree(host_); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  std::uint64_t wrong() {
    std::memset(host_, 0, bytes_);
    forEachEnd([&](const BusCopy& word) { device_.copyOut(&word, 1, stream_).orThrow(); });
    device_.synchronizeStream(stream_).orThrow();
    std::uint64_t count = 0;
    for (std::uint64_t i = 0; i < 2 * blocks_.live.size(); ++i) count += host_[i] != i / 2 + 1;
    return count;
  }

 private:
  template <class Visit>
  void forEachEnd(Visit visit) {
    for (std::uint64_t i = 0; i < blocks_.live.size(); ++i) {
      const auto& [at, bytes] = blocks_.live[i];
      visit(BusCopy{toAddress(at), host_ + 2 * i, 8});
      visit(BusCopy{toAddress(at) + (bytes - 8) / 8 * 8, host_ + 2 * i + 1, 8});
    }
  }

  Device& device_;
  const Blocks& blocks_;
  const Stream stream_;
  const std::uint64_t bytes_;
  std::uint64_t* host_;
};

struct PlainCopy {
  double out = 0, in = 0;  ///< GB/s
};

PlainCopy plainCopy(Device& device, Stream stream, std::uint64_t bytes) {
  const Clock timed(device);
  void* const host = device.hostMalloc(bytes).orThrow();
  const Address memory = device.malloc(bytes).orThrow();
  const BusCopy all{memory, host, bytes};
  std::vector<double> out, in;
  for (int i = 0; i < 5; ++i) {
    out.push_back(rate(bytes, timed([&] {
                         device.copyOut(&all, 1, stream).orThrow();
                         device.synchronizeStream(stream).orThrow();
                       })));
    in.push_back(rate(bytes, timed([&] {
                        device.copyIn(&all, 1, stream).orThrow();
                        device.synchronizeStream(stream).orThrow();
                      })));
  }
  device.free(memory).orThrow();
  device.hostFree(host).orThrow();
  return {median(out), median(in)};
}

// Without bytes, only the time says something.
void row(const char* name, Seconds took, std::uint64_t bytes, double plain) {
  if (bytes == 0)
    return fmt::print("| {:<28} | {:>9.1f} | {:>8} | {:>8} |\n", name, took * 1e3, "", "");
  fmt::print("| {:<28} | {:>9.1f} | {:>8.1f} | {:>6.0f} % |\n", name, took * 1e3, rate(bytes, took),
             100 * rate(bytes, took) / plain);
}

struct Rounds {
  std::vector<double> sleep, wake, drop, map;
  std::uint64_t wrong = 0;
};

void run(CommandLine& line) {
  const Mix mix{parseBytes(line.takeOr("bytes", "8GiB")),
                parseBytes(line.takeOr("largest", "64MiB")),
                line.takeCount("free-every").value_or(2)};
  const std::size_t rounds = line.takeCount("rounds").value_or(5);
  const std::chrono::milliseconds pause(line.takeCount("pause").value_or(200));
  const std::string backend = line.takeOr("device", "auto");
  line.requireAllTaken("--bytes, --largest, --free-every, --rounds, --pause, --device");
  if (mix.largest <= 4 * kKiB || mix.free_every < 2)
    throw std::invalid_argument(
        "bench_sleep: --largest is over 4 KiB, and --free-every at least 2");
  const std::unique_ptr<Device> device = openDevice(backend);
  const Stream stream = device->createStream().orThrow();
  const Clock timed(*device);
  const PlainCopy plain = plainCopy(*device, stream, std::min(mix.bytes, 2 * kGiB));
  CachingAllocator allocator(*device);
  Pools pools(allocator);
  MemPool pool(pools);
  const Blocks blocks(allocator, pool, stream, mix);
  Numbers numbers(*device, blocks, stream);
  Rounds all;

  const std::uint64_t free_before = device->memoryInfo().orThrow().free_bytes;
  SleepReport cold;
  WakeReport woken;
  const Seconds cold_sleep = timed([&] { cold = pools.sleep({pool.id()}); });
  const std::uint64_t free_asleep = device->memoryInfo().orThrow().free_bytes;
  const Seconds first_wake = timed([&] { woken = pools.wake({pool.id()}); });
  all.wrong += numbers.wrong();
  SleepReport warm;
  for (std::size_t i = 0; i < rounds; ++i) {
    all.sleep.push_back(timed([&] { warm = pools.sleep({pool.id()}); }));
    std::this_thread::sleep_for(pause);
    all.wake.push_back(timed([&] { woken = pools.wake({pool.id()}); }));
    all.wrong += numbers.wrong();
  }
  WakeReport soon;
  (void)pools.sleep({pool.id()});
  const Seconds at_once = timed([&] { soon = pools.wake({pool.id()}); });
  const std::uint64_t restored = woken.restored, resident = woken.resident;
  for (std::size_t i = 0; i < rounds; ++i) {
    all.drop.push_back(timed([&] { (void)pools.sleep({pool.id()}, Contents::kDrop); }));
    std::this_thread::sleep_for(pause);
    all.map.push_back(timed([&] { (void)pools.wake({pool.id()}); }));
  }

  fmt::print("\n{}: {} allocated, {} blocks of {} left, {} reserved\n\n", device->name(),
             formatBytes(mix.bytes), blocks.live.size(), formatBytes(blocks.live_bytes),
             formatBytes(cold.released + cold.stayed));
  fmt::print("| {:<28} | {:>9} | {:>8} | {:>8} |\n|---|---|---|---|\n", "", "ms", "GB/s",
             "of plain");
  row("one plain copy out, GiB", double(kGiB) / plain.out / 1e9, kGiB, plain.out);
  row("one plain copy in, GiB", double(kGiB) / plain.in / 1e9, kGiB, plain.in);
  row("sleep, nothing pinned", cold_sleep, cold.saved, plain.out);
  row("sleep, pinned memory kept", median(all.sleep), warm.saved, plain.out);
  row("first wake", first_wake, restored, plain.in);
  row("wake", median(all.wake), restored, plain.in);
  row("wake at once", at_once, soon.restored, plain.in);
  row("sleep that saves nothing", median(all.drop), 0, plain.out);
  row("wake that restores nothing", median(all.map), 0, plain.in);
  fmt::print("\ncopied {}, {:.3f} times the blocks' bytes; pinned {}; resident {}\n",
             formatBytes(warm.saved), double(warm.saved) / double(warm.live),
             formatBytes(cold.pinned_anew), formatBytes(resident));
  fmt::print("the driver's free memory rose by {}; given back {}, stayed {}\n",
             formatBytes(free_asleep - std::min(free_before, free_asleep)),
             formatBytes(cold.released), formatBytes(cold.stayed));
  if (all.wrong > 0) throw std::runtime_error(fmt::format("{} words are wrong", all.wrong));
  for (const Blocks::Block& block : blocks.live) allocator.free(block.at);
  allocator.forgetStream(stream);
}

}  // namespace
}  // namespace cistern::bench

int main(int argc, char** argv) {
  return cistern::bench::runProgram(argc, argv, cistern::bench::run);
}
