// What the tests of every CUDA library share: a problem whose answer is known is queued with the
// current handle, eagerly by many threads and from a captured graph. No kernels: the libraries
// compute, and copies check.
//
// A Problem is made on a rig and a stream, and has
//   void queue();   // queues the whole computation on the current stream; may be captured
//   bool right();   // waits for the stream; whether the answer is the known one
//   void poison();  // queues overwriting the answer
#pragma once

#include <cmath>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/device/vendor/vendor.hpp"
#include "cistern/allocator.hpp"
#include "cistern/current.hpp"
#include "cistern/graph.hpp"
#include "handles/handle_statistics.hpp"
#include "handles/memory_source.hpp"
#include "handles/workspaces.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skipped.hpp"

namespace cistern::test {

/// Of a case that needs a GPU: whether there is none, and the case is skipped.
inline bool noGpu() {
  if (cuda::deviceCount().ok()) return false;
  skipped("no GPU");
  return true;
}

/// Throws naming the call when a library's or the runtime's status is not 0, which is success in
/// all of them.
template <class Status>
void must(Status status, const char* call) {
  if (int(status) != 0) throw Error(fmt::format("{} gave {}", call, int(status)));
}
#define CISTERN_MUST(call) ::cistern::test::must(call, #call)

/// Device 0 and its allocator, from which workspaces come too.
struct GpuRig {
  std::unique_ptr<Device> device = cuda::open(0).orThrow();
  CachingAllocator allocator{*device};
  Pools pools{allocator};

  GpuRig() { setWorkspaceAllocator(0, &allocator); }
  ~GpuRig() { setWorkspaceAllocator(0, nullptr); }
  std::uint64_t reserved() const {
    return std::uint64_t(allocator.memoryStats().all[std::size_t(Stat::kReservedBytes)].current);
  }
  std::uint64_t allocated() const {
    return std::uint64_t(allocator.memoryStats().all[std::size_t(Stat::kAllocatedBytes)].current);
  }
};

inline cudaStream_t native(Stream stream) { return reinterpret_cast<cudaStream_t>(stream.raw); }

/// An array on the device, from the allocator.
template <class T>
class DeviceArray {
 public:
  DeviceArray(GpuRig& rig, Stream stream, std::size_t count)
      : allocator_(rig.allocator), stream_(stream), count_(count) {
    data_ = static_cast<T*>(allocator_.allocate(count * sizeof(T), stream));
  }
  DeviceArray(GpuRig& rig, Stream stream, const std::vector<T>& values)
      : DeviceArray(rig, stream, values.size()) {
    CISTERN_MUST(cudaMemcpyAsync(data_, values.data(), bytes(), cudaMemcpyDefault, native(stream)));
    CISTERN_MUST(cudaStreamSynchronize(native(stream)));
  }
  ~DeviceArray() { allocator_.free(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  std::size_t bytes() const { return count_ * sizeof(T); }
  void poison() { CISTERN_MUST(cudaMemsetAsync(data_, 0xff, bytes(), native(stream_))); }
  void copyFrom(const DeviceArray& other) {
    CISTERN_MUST(cudaMemcpyAsync(data_, other.data_, bytes(), cudaMemcpyDefault, native(stream_)));
  }
  /// Waits for the stream.
  std::vector<T> values() const {
    std::vector<T> host(count_);
    CISTERN_MUST(cudaMemcpyAsync(host.data(), data_, bytes(), cudaMemcpyDefault, native(stream_)));
    CISTERN_MUST(cudaStreamSynchronize(native(stream_)));
    return host;
  }

 private:
  CachingAllocator& allocator_;
  Stream stream_;
  std::size_t count_;
  T* data_ = nullptr;
};

/// Small whole numbers, so that sums of products are exact whatever the order and the format.
inline std::vector<float> smallNumbers(std::size_t count, std::uint32_t seed) {
  std::vector<float> values(count);
  for (float& value : values) {
    seed = seed * 1664525U + 1013904223U;
    value = float(int(seed >> 24 & 7) - 3);
  }
  return values;
}

inline bool near(const std::vector<float>& a, const std::vector<float>& b, float tolerance) {
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) <= tolerance)) return false;  // NaN is wrong too
  }
  return a.size() == b.size();
}

/// body(t) on that many threads at once; the first failure's text, or empty.
template <class Body>
std::string onThreads(int count, Body body) {
  std::mutex mutex;
  std::string failure;
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      try {
        body(t);
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        if (failure.empty()) failure = fmt::format("thread {}: {}", t, error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failure;
}

/// One problem again and again on each of 16 threads, on streams of their own.
template <class Problem>
void solveOn16Threads() {
  GpuRig rig;
  const std::string failure = onThreads(16, [&](int t) {
    const Stream stream = rig.device->createStream().orThrow();
    {
      const StreamGuard guard(stream);
      Problem problem(rig, stream, std::uint32_t(t + 1));
      for (int round = 0; round < 5; ++round) {
        problem.poison();
        problem.queue();
        if (!problem.right()) throw Error(fmt::format("round {}: a wrong answer", round));
      }
    }
    rig.device->synchronizeStream(stream).orThrow();
  });
  CHECK(failure == "");
}

/// Captures what `problem` queues, and replays it.
template <class Problem>
bool capturedAndReplayed(GpuRig& rig, Stream stream, Problem& problem) {
  Graph graph(rig.pools);
  {
    GraphCapture capture(graph, stream, {}, CaptureMode::kThreadLocal);
    problem.queue();
    capture.end();
  }
  bool right = true;
  for (int replay = 0; replay < 3; ++replay) {
    problem.poison();
    graph.replay(stream);
    right = problem.right() && right;
  }
  return right;
}

/// Works inside a capture, and thirty captures need no more memory than three.
template <class Problem>
void solveInCaptures() {
  GpuRig rig;
  std::uint64_t allocated = 0, reserved = 0, free_bytes = 0;
  const std::string failure = onThreads(1, [&](int) {
    const Stream stream = rig.device->createStream().orThrow();
    const StreamGuard guard(stream);
    Problem problem(rig, stream, 1);
    problem.queue();  // libraries load their kernels at the first call
    if (!problem.right()) throw Error("a wrong answer before the capture");
    for (int capture = 0; capture < 30; ++capture) {
      if (!capturedAndReplayed(rig, stream, problem)) throw Error("a wrong answer from a graph");
      if (capture != 2) continue;
      allocated = rig.allocated();
      reserved = rig.reserved();
      free_bytes = rig.device->memoryInfo().orThrow().free_bytes;
    }
    if (rig.allocated() != allocated) throw Error("captures grew what is allocated");
    if (rig.reserved() > reserved) throw Error("captures grew what is reserved");
    if (rig.device->memoryInfo().orThrow().free_bytes + 16 * kMiB < free_bytes) {
      throw Error("captures grew what the library holds of the device");
    }
  });
  CHECK(failure == "");
}

/// A thread's first use of a getter may come inside a capture, which goes on unbroken.
template <class Getter>
void createInACapture(Getter getter) {
  GpuRig rig;
  const std::string failure = onThreads(1, [&](int) {
    const Stream stream = rig.device->createStream().orThrow();
    const StreamGuard guard(stream);
    rig.device->beginCapture(stream, CaptureMode::kGlobal).orThrow();
    std::string why;
    try {
      (void)getter();
    } catch (const std::exception& error) {
      why = error.what();
    }
    Result<DeviceGraph> graph = rig.device->endCapture(stream);
    if (!why.empty()) throw Error(why);
    rig.device->destroyGraph(std::move(graph).orThrow()).orThrow();
  });
  CHECK(failure == "");
}

/// Threads that come one after the other share what there were at once.
template <class Getter>
void reuseByShortThreads(const std::string& library, Getter getter) {
  const auto created = [&] {
    std::uint64_t count = 0;
    for (const HandleStats& one : handleStatistics()) {
      if (one.library == library) count += one.handles.created;
    }
    return count;
  };
  CHECK(onThreads(1, [&](int) { (void)getter(); }) == "");
  const std::uint64_t before = created();
  CHECK(before >= 1);
  for (int i = 0; i < 100; ++i) CHECK(onThreads(1, [&](int) { (void)getter(); }) == "");
  CHECK(created() == before);
}

/// Without a driver a getter says so; nothing crashes.
template <class Getter>
void tellWithoutADriver(Getter getter) {
  if (cuda::deviceCount().ok()) return skipped("there is a GPU");
  CHECK_THROWS_WITH(getter(), Catch::Matchers::ContainsSubstring("no usable NVIDIA GPU"));
}

}  // namespace cistern::test

// The tests that every library has.
#define CISTERN_LIBRARY_TESTS(name, getter, Problem)                                       \
  TEST_CASE(name ": 16 threads on their own streams get right answers", "[gpu]") {         \
    if (!cistern::test::noGpu()) cistern::test::solveOn16Threads<Problem>();               \
  }                                                                                        \
  TEST_CASE(name ": right answers from captured graphs, and no growth", "[gpu]") {         \
    if (!cistern::test::noGpu()) cistern::test::solveInCaptures<Problem>();                \
  }                                                                                        \
  TEST_CASE(name ": a handle that is made during a capture leaves it unbroken", "[gpu]") { \
    if (!cistern::test::noGpu()) cistern::test::createInACapture(getter);                  \
  }                                                                                        \
  TEST_CASE(name ": threads that come and go reuse handles", "[gpu]") {                    \
    if (!cistern::test::noGpu()) cistern::test::reuseByShortThreads(name, getter);         \
  }                                                                                        \
  TEST_CASE(name ": without a driver the getter says so") {                                \
    cistern::test::tellWithoutADriver(getter);                                             \
  }
