// What a pair of allocate and free costs through each door of the library: the class's own verbs,
// the functions of the allocators that a process shares, and the C API. Each on the default stream
// of the first device that this machine has (a simulated one, without a GPU).
//
//   bench_doors [ROUNDS]
//
// (and options that ./dev bench gives to all programs)
//
// times all doors in each round, a few milliseconds each, in an order that changes from round to
// round. It prints, for each, the median and the least of all rounds; and by how much it is more
// than the verbs are in the same round, in the median, so that what slows a few rounds down, or all
// doors alike, does not decide.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "cistern/cistern.h"
#include "cistern/memory.hpp"

namespace {

cistern_allocator_t handle() {
  static const cistern_allocator_t first = [] {
    cistern_allocator_t made = nullptr;
    if (cistern_default_allocator(0, &made) != CISTERN_OK) std::abort();
    return made;
  }();
  return first;
}

// ---- The doors
// -----------------------------------------------------------------------------------

void verbs(std::size_t bytes, long pairs) {
  cistern::CachingAllocator& allocator = cistern::allocator(0);
  for (long i = 0; i < pairs; ++i) {
    void* block = allocator.allocate(bytes, cistern::Stream{});
    benchmark::DoNotOptimize(block);
    allocator.free(block);
  }
}

void functions(std::size_t bytes, long pairs) {
  for (long i = 0; i < pairs; ++i) {
    void* block = cistern::allocate(bytes, cistern::Stream{});
    benchmark::DoNotOptimize(block);
    cistern::free(block);
  }
}

void c(std::size_t bytes, long pairs) {
  const cistern_allocator_t allocator = handle();
  for (long i = 0; i < pairs; ++i) {
    void* block = nullptr;
    if (cistern_allocate(allocator, bytes, nullptr, &block) != CISTERN_OK) std::abort();
    benchmark::DoNotOptimize(block);
    if (cistern_free(allocator, block) != CISTERN_OK) std::abort();
  }
}

struct Door {
  const char* name;
  void (*run)(std::size_t bytes, long pairs);
};
constexpr std::array kDoors{Door{"CachingAllocator", verbs}, Door{"cistern::allocate", functions},
                            Door{"cistern_allocate", c}};

// ---- Timing
// --------------------------------------------------------------------------------------

double nsOfPair(const Door& door, std::size_t bytes, long pairs) {
  const auto begin = std::chrono::steady_clock::now();
  door.run(bytes, pairs);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / double(pairs);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void compare(std::size_t bytes, std::size_t rounds) {
  constexpr long kPairs = 200'000;
  std::array<std::vector<double>, kDoors.size()> took;
  for (const Door& door : kDoors) door.run(bytes, kPairs);
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < kDoors.size(); ++turn) {
      const std::size_t door = (round + turn) % kDoors.size();
      took[door].push_back(nsOfPair(kDoors[door], bytes, kPairs));
    }
  }
  for (std::size_t door = 0; door < kDoors.size(); ++door) {
    std::vector<double> more;
    for (std::size_t round = 0; round < rounds; ++round)
      more.push_back(took[door][round] - took[0][round]);
    std::printf("%9zu  %-18s %7.2f %7.2f %+10.2f\n", bytes, kDoors[door].name, median(took[door]),
                *std::min_element(took[door].begin(), took[door].end()), median(more));
  }
}

bool isForAll(std::string_view argument) {
  return argument.starts_with("--device=") || argument.starts_with("--peers=") ||
         argument.starts_with("--benchmark_");
}

}  // namespace

int main(int argc, char** argv) {
  long rounds = 51;
  for (const std::string_view argument : std::span(argv + 1, argv + argc)) {
    if (isForAll(argument)) continue;
    const auto [end, failed] =
        std::from_chars(argument.data(), argument.data() + argument.size(), rounds);
    if (failed == std::errc{} && *end == '\0' && rounds > 0) continue;
    std::fprintf(stderr, "bench_doors: unknown argument '%s': allowed: ROUNDS\n", argument.data());
    return 2;
  }
  std::printf("ns a pair, %ld rounds on %s\n", rounds,
              std::string(cistern::allocator(0).device().backend()).c_str());
  std::printf("%9s  %-18s %7s %7s %10s\n", "bytes", "door", "median", "least", "to verbs");
  for (const std::size_t bytes : {std::size_t{512}, std::size_t{1} << 20})
    compare(bytes, std::size_t(rounds));
}
