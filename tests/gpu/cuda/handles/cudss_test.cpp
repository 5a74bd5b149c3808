// cuDSS: a sparse direct solve. It is analysed and factorised once, and solved again and again.
#include "cistern/handles/cudss.hpp"

#include <cudss.h>

#include "tests/gpu/cuda/handles/problem.hpp"
#include "tests/gpu/cuda/handles/tridiagonal.hpp"

using namespace cistern;
using namespace cistern::test;

namespace {

/// The diagonal and what is above it, as the library wants a symmetric matrix.
struct UpperHalf {
  std::vector<int> offsets{0}, columns;
  std::vector<float> values;

  explicit UpperHalf(const Tridiagonal& whole) {
    for (int row = 0; row < kRows; ++row) {
      for (int i = whole.offsets[std::size_t(row)]; i < whole.offsets[std::size_t(row) + 1]; ++i) {
        if (whole.columns[std::size_t(i)] < row) continue;
        columns.push_back(whole.columns[std::size_t(i)]);
        values.push_back(whole.values[std::size_t(i)]);
      }
      offsets.push_back(int(columns.size()));
    }
  }
};

/// A positive definite system.
class SparseSolve {
 public:
  SparseSolve(GpuRig& rig, Stream stream, std::uint32_t seed)
      : host_x_(smallNumbers(kRows, seed)),
        rows_(rig, stream, half_.offsets),
        columns_(rig, stream, half_.columns),
        values_(rig, stream, half_.values),
        b_(rig, stream, whole_.times(host_x_)),
        x_(rig, stream, kRows) {
    CISTERN_MUST(cudssConfigCreate(&config_));
    CISTERN_MUST(cudssDataCreate(getCurrentCudssHandle(), &data_));
    CISTERN_MUST(cudssMatrixCreateCsr(&a_matrix_, kRows, kRows, std::int64_t(half_.values.size()),
                                      rows_.data(), nullptr, columns_.data(), values_.data(),
                                      CUDA_R_32I, CUDA_R_32I, CUDA_R_32F, CUDSS_MTYPE_SPD,
                                      CUDSS_MVIEW_UPPER, CUDSS_BASE_ZERO));
    CISTERN_MUST(cudssMatrixCreateDn(&b_matrix_, kRows, 1, kRows, b_.data(), CUDA_R_32F,
                                     CUDSS_LAYOUT_COL_MAJOR));
    CISTERN_MUST(cudssMatrixCreateDn(&x_matrix_, kRows, 1, kRows, x_.data(), CUDA_R_32F,
                                     CUDSS_LAYOUT_COL_MAJOR));
    execute(CUDSS_PHASE_ANALYSIS);
    execute(CUDSS_PHASE_FACTORIZATION);
  }
  ~SparseSolve() {
    cudssMatrixDestroy(a_matrix_);
    cudssMatrixDestroy(b_matrix_);
    cudssMatrixDestroy(x_matrix_);
    cudssDataDestroy(getCurrentCudssHandle(), data_);
    cudssConfigDestroy(config_);
  }
  SparseSolve(const SparseSolve&) = delete;
  SparseSolve& operator=(const SparseSolve&) = delete;

  void queue() { execute(CUDSS_PHASE_SOLVE); }
  bool right() { return near(x_.values(), host_x_, 1e-4F); }
  void poison() { x_.poison(); }
  std::uint64_t ownBytes() const {
    return rows_.bytes() + columns_.bytes() + values_.bytes() + b_.bytes() + x_.bytes();
  }

 private:
  void execute(int phase) {
    CISTERN_MUST(cudssExecute(getCurrentCudssHandle(), phase, config_, data_, a_matrix_, x_matrix_,
                              b_matrix_));
  }

  Tridiagonal whole_;
  UpperHalf half_{whole_};
  std::vector<float> host_x_;
  DeviceArray<int> rows_, columns_;
  DeviceArray<float> values_, b_, x_;
  cudssConfig_t config_ = nullptr;
  cudssData_t data_ = nullptr;
  cudssMatrix_t a_matrix_ = nullptr, b_matrix_ = nullptr, x_matrix_ = nullptr;
};

void solveRightly(SparseSolve& solve, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    solve.poison();
    solve.queue();
    if (!solve.right()) throw Error(fmt::format("round {}: a wrong answer", round));
  }
}

std::uint64_t handlesCreated() {
  std::uint64_t count = 0;
  for (const HandleStats& one : handleStatistics()) {
    if (one.library == "cuDSS") count += one.handles.created;
  }
  return count;
}

/// Device memory in use that is not the allocator's.
std::uint64_t takenBeside(const GpuRig& rig) {
  const MemoryInfo info = rig.device->memoryInfo().orThrow();
  return info.total_bytes - info.free_bytes - rig.reserved();
}

/// What cuDSS says to a solve that is captured; "" when the graph has it.
std::string refusalOfCapture(GpuRig& rig, Stream stream) {
  SparseSolve solve(rig, stream, 1);
  solveRightly(solve, 1);  // libraries load their kernels at the first call
  Graph graph(rig.pools);
  try {
    GraphCapture capture(graph, stream, {}, CaptureMode::kThreadLocal);
    solve.queue();
    capture.end();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("cuDSS: 16 threads on their own streams get right answers", "[gpu]") {
  if (!noGpu()) solveOn16Threads<SparseSolve>();
}

TEST_CASE("cuDSS: a system's memory is the allocator's, and all of it comes back", "[gpu]") {
  if (noGpu()) return;
  GpuRig rig;
  const Stream stream = rig.device->createStream().orThrow();
  const std::string failure = onThreads(1, [&](int) {
    const StreamGuard guard(stream);
    SparseSolve solve(rig, stream, 1);
    const std::uint64_t rounding = 5 * 512;
    if (rig.allocated() <= solve.ownBytes() + rounding) throw Error("nothing came from it");
    solveRightly(solve, 3);
  });
  CHECK(failure == "");
  CHECK(rig.allocated() == 0);  // the handle, which lives on, keeps none
}

TEST_CASE("cuDSS: systems that 16 threads factorise again and again need no more memory", "[gpu]") {
  if (noGpu()) return;
  GpuRig rig;
  std::vector<Stream> streams;
  for (int t = 0; t < 16; ++t) streams.push_back(rig.device->createStream().orThrow());
  std::uint64_t beside = 0, reserved = 0;
  for (int round = 0; round < 20; ++round) {
    const std::string failure = onThreads(16, [&](int t) {
      const StreamGuard guard(streams[std::size_t(t)]);
      SparseSolve solve(rig, streams[std::size_t(t)], std::uint32_t(t + 1));
      solveRightly(solve, 3);
    });
    REQUIRE(failure == "");
    REQUIRE(rig.allocated() == 0);
    if (round != 4) continue;
    beside = takenBeside(rig);
    reserved = rig.reserved();
  }
  CHECK(takenBeside(rig) <= beside + 16 * kMiB);
  CHECK(rig.reserved() <= reserved + 16 * kMiB);
  CHECK(handlesCreated() <= 16);  // never more than threads at once
}

// Analysis and factorisation are done before the capture. Whether a solve can be captured is the
// library's to say: then the graph's answers are right, and captures do not grow. Else it is a
// refusal, after which eager solves go on.
TEST_CASE("cuDSS: a captured solve is right when it is replayed, or is refused", "[gpu]") {
  if (noGpu()) return;
  std::string refusal;
  {
    GpuRig rig;
    const std::string failure = onThreads(1, [&](int) {
      const Stream stream = rig.device->createStream().orThrow();
      const StreamGuard guard(stream);
      refusal = refusalOfCapture(rig, stream);
      const Stream fresh = rig.device->createStream().orThrow();
      const StreamGuard on_fresh(fresh);
      SparseSolve solve(rig, fresh, 2);
      solveRightly(solve, 3);
    });
    CHECK(failure == "");
    CHECK(rig.allocated() == 0);
  }
  if (refusal.empty()) return solveInCaptures<SparseSolve>();
  WARN("cuDSS does not take part in a capture: " << refusal);
}

TEST_CASE("cuDSS: a handle that is made during a capture leaves it unbroken", "[gpu]") {
  if (!noGpu()) createInACapture(getCurrentCudssHandle);
}

TEST_CASE("cuDSS: threads that come and go reuse handles", "[gpu]") {
  if (!noGpu()) reuseByShortThreads("cuDSS", getCurrentCudssHandle);
}

TEST_CASE("cuDSS: without a driver the getter says so") {
  tellWithoutADriver(getCurrentCudssHandle);
}
