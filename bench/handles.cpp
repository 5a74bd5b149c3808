// bench_handles: what it costs to get a cuBLAS handle: made anew, from the pool (a hit), and what
// the library's own set-stream and get-stream calls cost, in one run. Needs a GPU.
#include <chrono>
#include <cstdio>
#include <map>
#include <vector>

#include <benchmark/benchmark.h>
#include <cublas_v2.h>
#include <fmt/format.h>

#include "allocator/device/vendor/vendor.hpp"
#include "bench/harness/command_line.hpp"
#include "bench/harness/median_reporter.hpp"
#include "cistern/allocator.hpp"
#include "cistern/current.hpp"
#include "cistern/error.hpp"
#include "cistern/handles/cublas.hpp"
#include "handles/memory_source.hpp"

namespace cistern::bench {
namespace {

using Clock = std::chrono::steady_clock;

void must(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw Error(cublasGetStatusString(status));
}

cudaStream_t native(Stream stream) { return reinterpret_cast<cudaStream_t>(stream.raw); }

/// The counter that carries a result, in ns a step.
void report(benchmark::State& state, Clock::duration took) {
  state.counters[kCounter] =
      std::chrono::duration<double, std::nano>(took).count() / double(state.iterations());
}

template <class Step>
void timeSteps(benchmark::State& state, Step step) {
  step();  // what is made at the first time is not what is measured
  const auto since = Clock::now();
  for (auto _ : state) step();
  report(state, Clock::now() - since);
}

/// A device, an allocator for workspaces, two streams, and a handle of the benchmark's own.
struct Bench {
  std::unique_ptr<Device> device = cuda::open(0).orThrow();
  CachingAllocator allocator{*device};
  Stream streams[2] = {device->createStream().orThrow(), device->createStream().orThrow()};
  cublasHandle_t own = nullptr;

  Bench() {
    setWorkspaceAllocator(0, &allocator);
    must(cublasCreate(&own));
  }
  ~Bench() { setWorkspaceAllocator(0, nullptr); }

  void create(benchmark::State& state) {
    Clock::duration took{};
    for (auto _ : state) {
      cublasHandle_t made = nullptr;
      const auto since = Clock::now();
      must(cublasCreate(&made));
      took += Clock::now() - since;
      must(cublasDestroy(made));
    }
    report(state, took);
  }
  void setStream(benchmark::State& state) {
    timeSteps(state, [&] { must(cublasSetStream(own, native(streams[0]))); });
  }
  void setStreamInTurn(benchmark::State& state) {
    timeSteps(state,
              [&, i = 0]() mutable { must(cublasSetStream(own, native(streams[++i & 1]))); });
  }
  void getStream(benchmark::State& state) {
    cudaStream_t stream = nullptr;
    timeSteps(state, [&] { must(cublasGetStream(own, &stream)); });
  }
  void hit(benchmark::State& state) {
    const StreamGuard guard(streams[0]);
    timeSteps(state, [] { benchmark::DoNotOptimize(getCurrentCUDABlasHandle()); });
  }
  void hitUnderGuard(benchmark::State& state) {
    const DeviceGuard guard(0);
    hit(state);
  }
  void hitInTurn(benchmark::State& state) {
    const DeviceGuard device_guard(0);
    timeSteps(state, [&, i = 0]() mutable {
      const StreamGuard guard(streams[++i & 1]);
      benchmark::DoNotOptimize(getCurrentCUDABlasHandle());
    });
  }
};

struct Row {
  const char* name;
  void (Bench::*run)(benchmark::State&);
  int iterations;  ///< 0: as many as Google Benchmark likes
};
constexpr Row kRows[] = {
    {"cublasCreate", &Bench::create, 20},
    {"cublasSetStream", &Bench::setStream, 0},
    {"cublasSetStream/two_in_turn", &Bench::setStreamInTurn, 0},
    {"cublasGetStream", &Bench::getStream, 0},
    {"hit", &Bench::hit, 0},
    {"hit/under_a_device_guard", &Bench::hitUnderGuard, 0},
    {"hit/two_streams_in_turn", &Bench::hitInTurn, 0},
};

void runAll(CommandLine& line, Bench& bench, std::map<std::string, double>& medians) {
  std::vector<char*> unknown = startGoogleBenchmark(line, {});
  if (benchmark::ReportUnrecognizedArguments(int(unknown.size()), unknown.data()))
    throw InvalidArgument("allowed: --benchmark_...");
  for (const Row& row : kRows) {
    auto* const made = benchmark::RegisterBenchmark(
        row.name, [&bench, &row](benchmark::State& state) { (bench.*row.run)(state); });
    if (row.iterations != 0) made->Iterations(row.iterations);
  }
  MedianReporter reporter(medians);
  benchmark::RunSpecifiedBenchmarks(&reporter);
}

void print(std::map<std::string, double>& medians) {
  const double create = medians["cublasCreate"], set = medians["cublasSetStream"];
  fmt::print("\n| | ns | of cublasCreate | over cublasSetStream, ns |\n|---|---:|---:|---:|\n");
  for (const Row& row : kRows) {
    const double ns = medians[row.name];
    fmt::print("| {} | {:.1f} | 1/{:.0f} | {:+.1f} |\n", row.name, ns, create / ns, ns - set);
  }
}

void run(CommandLine& line) {
  line.requireAllTaken("--benchmark_...");
  if (!cuda::deviceCount()) {
    fmt::print("bench_handles: left out: no NVIDIA GPU\n");
    return;
  }
  Bench bench;
  std::map<std::string, double> medians;
  runAll(line, bench, medians);
  print(medians);
}

}  // namespace
}  // namespace cistern::bench

int main(int argc, char** argv) {
  return cistern::bench::runProgram(argc, argv, cistern::bench::run);
}
