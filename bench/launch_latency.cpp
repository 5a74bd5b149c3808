// bench_launch_latency: whether moving pages slows a thread that launches kernels. The launches are
// timed one by one: alone, and while another thread's allocations move pages and the allocator's
// background thread removes what they leave behind. Needs a GPU and a build with nvcc.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bench/harness/command_line.hpp"
#include "bench/launch/empty_kernel.hpp"
#include "cistern/allocator.hpp"
#include "cistern/device.hpp"

namespace {

using namespace cistern;
using Clock = std::chrono::steady_clock;

constexpr int kLaunches = 40'000;
constexpr auto kBetween = std::chrono::microseconds(10);

struct Latency {
  double p50_us, p99_us, p999_us;
};

Latency launches(Device& device) {
  const Stream stream = device.createStream().orThrow();
  std::vector<double> took;
  for (int i = 0; i < kLaunches; ++i) {
    const auto since = Clock::now();
    if (!bench::launchNothing(stream.raw)) throw Error("the launch was refused");
    took.push_back(std::chrono::duration<double, std::micro>(Clock::now() - since).count());
    while (Clock::now() - since < kBetween) {
    }
  }
  device.synchronizeStream(stream).orThrow();
  device.destroyStream(stream).orThrow();
  std::sort(took.begin(), took.end());
  const auto at = [&](double q) { return took[std::size_t(q * double(took.size()))]; };
  return {at(0.5), at(0.99), at(0.999)};
}

/// Sizes that change all the time, so that every miss moves pages.
void movePages(CachingAllocator& allocator, Stream stream, const std::atomic<bool>& stop) {
  std::vector<void*> held;
  for (std::uint64_t i = 1; !stop.load(std::memory_order_relaxed); ++i) {
    held.push_back(allocator.allocate((20 + i * 37 % 300) * kMiB, stream));
    if (held.size() < 8) continue;
    std::swap(held[i % held.size()], held.back());
    allocator.free(held.back());
    held.pop_back();
  }
  for (void* block : held) allocator.free(block);
}

void print(const char* name, const Latency& l) {
  fmt::print("{:<24} p50 {:6.2f} us   p99 {:6.2f} us   p99.9 {:7.2f} us\n", name, l.p50_us,
             l.p99_us, l.p999_us);
}

void run(bench::CommandLine& line) {
  line.requireAllTaken("none");
  const auto device = openDevice("cuda");
  print("alone", launches(*device));
  // Few pages, so that what moved pages leave behind is soon more than is kept.
  CachingAllocator allocator(*device, Options::parse("recycle:eager,page_size:32M"));
  const Stream stream = device->createStream().orThrow();
  std::atomic<bool> stop{false};
  std::thread mover([&] { movePages(allocator, stream, stop); });
  print("while pages move", launches(*device));
  stop = true;
  mover.join();
  const PageCounts pages = allocator.memoryStats().pages;
  fmt::print("meanwhile: {} pages moved, {} taken back into use, {} old mappings removed\n",
             pages.recycled, pages.revived, pages.retired);
  print("alone again", launches(*device));
}

}  // namespace

int main(int argc, char** argv) { return bench::runProgram(argc, argv, run); }
