// What a pair of allocate and free costs through each door of the shared library: the class's own
// verbs, the functions of the allocators that a process shares, and the C API. Each on the default
// stream of the first device that this machine has (a simulated one, without a GPU).
//
//   bench_doors --benchmark_enable_random_interleaving=true --benchmark_repetitions=15
//
// prints the three in an order that changes, so that the ratio of two medians is of one run.
#include <cstdlib>

#include <benchmark/benchmark.h>

#include "cistern/cistern.h"
#include "cistern/default_allocator.hpp"

namespace {

void verbs(benchmark::State& state) {
  cistern::CachingAllocator& allocator = cistern::allocator(0);
  const auto bytes = std::size_t(state.range(0));
  for (auto _ : state) {
    void* const block = allocator.allocate(bytes, cistern::Stream{});
    benchmark::DoNotOptimize(block);
    allocator.free(block);
  }
}

void shared(benchmark::State& state) {
  const auto bytes = std::size_t(state.range(0));
  for (auto _ : state) {
    void* const block = cistern::allocate(bytes, cistern::Stream{});
    benchmark::DoNotOptimize(block);
    cistern::free(block);
  }
}

void c(benchmark::State& state) {
  cistern_allocator_t allocator = nullptr;
  if (cistern_default_allocator(0, &allocator) != CISTERN_OK) std::abort();
  const auto bytes = std::size_t(state.range(0));
  for (auto _ : state) {
    void* block = nullptr;
    if (cistern_allocate(allocator, bytes, nullptr, &block) != CISTERN_OK) std::abort();
    benchmark::DoNotOptimize(block);
    if (cistern_free(allocator, block) != CISTERN_OK) std::abort();
  }
}

}  // namespace

BENCHMARK(verbs)->Arg(512)->Arg(1 << 20);
BENCHMARK(shared)->Arg(512)->Arg(1 << 20);
BENCHMARK(c)->Arg(512)->Arg(1 << 20);
BENCHMARK_MAIN();
