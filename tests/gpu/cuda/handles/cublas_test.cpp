// cuBLAS: a matrix product. Matrices are column-major.
#include "cistern/handles/cublas.hpp"

#include <cublas_v2.h>

#include "tests/gpu/cuda/handles/problem.hpp"

using namespace cistern;
using namespace cistern::test;

namespace {

constexpr int kN = 160;
constexpr std::size_t kCount = std::size_t(kN) * kN;

std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> c(kCount, 0.0F);
  for (std::size_t col = 0; col < kN; ++col) {
    for (std::size_t k = 0; k < kN; ++k) {
      for (std::size_t row = 0; row < kN; ++row) {
        c[col * kN + row] += a[k * kN + row] * b[col * kN + k];
      }
    }
  }
  return c;
}

class Gemm {
 public:
  Gemm(GpuRig& rig, Stream stream, std::uint32_t seed)
      : host_a_(smallNumbers(kCount, seed)),
        host_b_(smallNumbers(kCount, seed + 1000)),
        a_(rig, stream, host_a_),
        b_(rig, stream, host_b_),
        c_(rig, stream, kCount),
        wanted_(product(host_a_, host_b_)) {}

  void queue() {
    const float one = 1, zero = 0;
    CISTERN_MUST(cublasSgemm(getCurrentCUDABlasHandle(), CUBLAS_OP_N, CUBLAS_OP_N, kN, kN, kN, &one,
                             a_.data(), kN, b_.data(), kN, &zero, c_.data(), kN));
  }
  bool right() { return c_.values() == wanted_; }
  void poison() { c_.poison(); }

 private:
  std::vector<float> host_a_, host_b_;
  DeviceArray<float> a_, b_, c_;
  std::vector<float> wanted_;
};

}  // namespace

CISTERN_LIBRARY_TESTS("cuBLAS", getCurrentCUDABlasHandle, Gemm)

TEST_CASE("cuBLAS: each of 16 threads computes in a workspace of the allocator", "[gpu]") {
  if (noGpu()) return;
  GpuRig rig;
  const std::string failure = onThreads(16, [&](int) {
    const StreamGuard guard(rig.device->createStream().orThrow());
    (void)getCurrentCUDABlasHandle();
  });
  CHECK(failure == "");
  const std::vector<WorkspaceStats> found = workspaceStatistics();
  REQUIRE(found.size() == 1);
  CHECK(found[0].count == 16);
  CHECK(found[0].bytes <= rig.allocated());
  CHECK(found[0].bytes > 0);
}

TEST_CASE("cuBLAS: switching between two streams needs one workspace each", "[gpu]") {
  if (noGpu()) return;
  GpuRig rig;
  const Stream streams[] = {rig.device->createStream().orThrow(),
                            rig.device->createStream().orThrow()};
  for (int i = 0; i < 1000; ++i) {
    const StreamGuard guard(streams[i % 2]);
    cudaStream_t bound = nullptr;
    CISTERN_MUST(cublasGetStream(getCurrentCUDABlasHandle(), &bound));
    CHECK(bound == native(streams[i % 2]));
  }
  REQUIRE(workspaceStatistics().size() == 1);
  CHECK(workspaceStatistics()[0].count == 2);
}
