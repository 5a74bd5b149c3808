// cuDSS: a sparse direct solve. It is analysed and factorised once, and solved again and again.
#include "handles/cuda/cudss.hpp"

#include "tests/gpu/cuda/handles/problem.hpp"
#include "tests/gpu/cuda/handles/tridiagonal.hpp"

using namespace cistern;
using namespace cistern::test;

namespace {

class SparseSolve {
 public:
  SparseSolve(GpuRig& rig, Stream stream, std::uint32_t seed)
      : host_x_(smallNumbers(kRows, seed)),
        rows_(rig, stream, matrix_.offsets),
        columns_(rig, stream, matrix_.columns),
        values_(rig, stream, matrix_.values),
        b_(rig, stream, matrix_.times(host_x_)),
        x_(rig, stream, kRows) {
    CISTERN_MUST(cudssConfigCreate(&config_));
    CISTERN_MUST(cudssDataCreate(getCurrentCudssHandle(), &data_));
    CISTERN_MUST(cudssMatrixCreateCsr(&a_matrix_, kRows, kRows, std::int64_t(matrix_.values.size()),
                                      rows_.data(), nullptr, columns_.data(), values_.data(),
                                      CUDA_R_32I, CUDA_R_32I, CUDA_R_32F, CUDSS_MTYPE_GENERAL,
                                      CUDSS_MVIEW_FULL, CUDSS_BASE_ZERO));
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

 private:
  void execute(int phase) {
    CISTERN_MUST(cudssExecute(getCurrentCudssHandle(), phase, config_, data_, a_matrix_, x_matrix_,
                              b_matrix_));
  }

  Tridiagonal matrix_;
  std::vector<float> host_x_;
  DeviceArray<int> rows_, columns_;
  DeviceArray<float> values_, b_, x_;
  cudssConfig_t config_ = nullptr;
  cudssData_t data_ = nullptr;
  cudssMatrix_t a_matrix_ = nullptr, b_matrix_ = nullptr, x_matrix_ = nullptr;
};

}  // namespace

CISTERN_LIBRARY_TESTS("cuDSS", getCurrentCudssHandle, SparseSolve)
