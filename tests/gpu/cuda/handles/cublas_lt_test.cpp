// cuBLASLt: a matrix product, which is given its stream and its workspace call by call.
#include <cublasLt.h>

#include "cistern/handles/cublas.hpp"
#include "tests/gpu/cuda/handles/problem.hpp"

using namespace cistern;
using namespace cistern::test;

namespace {

constexpr int kN = 128;
constexpr std::size_t kCount = std::size_t(kN) * kN;

class Matmul {
 public:
  Matmul(GpuRig& rig, Stream stream, std::uint32_t seed)
      : host_(smallNumbers(kCount, seed)),
        a_(rig, stream, host_),
        b_(rig, stream, identity()),
        c_(rig, stream, kCount) {
    CISTERN_MUST(cublasLtMatmulDescCreate(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    CISTERN_MUST(cublasLtMatrixLayoutCreate(&layout_, CUDA_R_32F, kN, kN, kN));
    chooseAlgorithm();
  }
  ~Matmul() {
    cublasLtMatrixLayoutDestroy(layout_);
    cublasLtMatmulDescDestroy(product_);
  }
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  void queue() {
    const float one = 1, zero = 0;
    const handles::Workspace workspace = getCurrentCUDABlasLtWorkspace();
    CISTERN_MUST(cublasLtMatmul(getCurrentCUDABlasLtHandle(), product_, &one, a_.data(), layout_,
                                b_.data(), layout_, &zero, c_.data(), layout_, c_.data(), layout_,
                                &chosen_.algo, workspace.memory, workspace.bytes,
                                native(currentStream())));
  }
  bool right() {
    std::vector<float> wanted = host_;
    for (float& value : wanted) value *= 2;
    return c_.values() == wanted;
  }
  void poison() { c_.poison(); }

 private:
  static std::vector<float> identity() {
    std::vector<float> twice(kCount, 0.0F);
    for (std::size_t i = 0; i < kN; ++i) twice[i * kN + i] = 2;
    return twice;
  }
  void chooseAlgorithm() {
    cublasLtMatmulPreference_t preference = nullptr;
    CISTERN_MUST(cublasLtMatmulPreferenceCreate(&preference));
    const std::size_t bytes = getCurrentCUDABlasLtWorkspace().bytes;
    CISTERN_MUST(cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes));
    int found = 0;
    CISTERN_MUST(cublasLtMatmulAlgoGetHeuristic(getCurrentCUDABlasLtHandle(), product_, layout_,
                                                layout_, layout_, layout_, preference, 1, &chosen_,
                                                &found));
    CISTERN_MUST(cublasLtMatmulPreferenceDestroy(preference));
    if (found != 1) throw Error("cuBLASLt knows no algorithm");
  }

  std::vector<float> host_;
  DeviceArray<float> a_, b_, c_;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t layout_ = nullptr;
  cublasLtMatmulHeuristicResult_t chosen_{};
};

}  // namespace

CISTERN_LIBRARY_TESTS("cuBLASLt", getCurrentCUDABlasLtHandle, Matmul)
