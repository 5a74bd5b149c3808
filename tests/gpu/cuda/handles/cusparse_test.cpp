// cuSPARSE: a sparse matrix times a vector.
#include "cistern/handles/cusparse.hpp"

#include <cusparse.h>

#include "tests/gpu/cuda/handles/problem.hpp"
#include "tests/gpu/cuda/handles/tridiagonal.hpp"

using namespace cistern;
using namespace cistern::test;

namespace {

class Spmv {
 public:
  Spmv(GpuRig& rig, Stream stream, std::uint32_t seed)
      : host_x_(smallNumbers(kRows, seed)),
        rows_(rig, stream, matrix_.offsets),
        columns_(rig, stream, matrix_.columns),
        values_(rig, stream, matrix_.values),
        x_(rig, stream, host_x_),
        y_(rig, stream, kRows) {
    CISTERN_MUST(cusparseCreateCsr(&a_, kRows, kRows, std::int64_t(matrix_.values.size()),
                                   rows_.data(), columns_.data(), values_.data(),
                                   CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                   CUDA_R_32F));
    CISTERN_MUST(cusparseCreateDnVec(&vector_x_, kRows, x_.data(), CUDA_R_32F));
    CISTERN_MUST(cusparseCreateDnVec(&vector_y_, kRows, y_.data(), CUDA_R_32F));
    std::size_t bytes = 0;
    CISTERN_MUST(cusparseSpMV_bufferSize(
        getCurrentCUDASparseHandle(), CUSPARSE_OPERATION_NON_TRANSPOSE, &kOne, a_, vector_x_,
        &kZero, vector_y_, CUDA_R_32F, CUSPARSE_SPMV_CSR_ALG1, &bytes));
    buffer_ = std::make_unique<DeviceArray<char>>(rig, stream, bytes + 1);
  }
  ~Spmv() {
    cusparseDestroyDnVec(vector_x_);
    cusparseDestroyDnVec(vector_y_);
    cusparseDestroySpMat(a_);
  }
  Spmv(const Spmv&) = delete;
  Spmv& operator=(const Spmv&) = delete;

  void queue() {
    CISTERN_MUST(cusparseSpMV(getCurrentCUDASparseHandle(), CUSPARSE_OPERATION_NON_TRANSPOSE, &kOne,
                              a_, vector_x_, &kZero, vector_y_, CUDA_R_32F, CUSPARSE_SPMV_CSR_ALG1,
                              buffer_->data()));
  }
  bool right() { return y_.values() == matrix_.times(host_x_); }
  void poison() { y_.poison(); }

 private:
  static constexpr float kOne = 1, kZero = 0;
  Tridiagonal matrix_;
  std::vector<float> host_x_;
  DeviceArray<int> rows_, columns_;
  DeviceArray<float> values_, x_, y_;
  std::unique_ptr<DeviceArray<char>> buffer_;
  cusparseSpMatDescr_t a_ = nullptr;
  cusparseDnVecDescr_t vector_x_ = nullptr, vector_y_ = nullptr;
};

}  // namespace

CISTERN_LIBRARY_TESTS("cuSPARSE", getCurrentCUDASparseHandle, Spmv)
