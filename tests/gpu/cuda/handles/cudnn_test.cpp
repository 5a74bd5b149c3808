// cuDNN: a convolution of one image with eight filters of 3 by 3.
#include "cistern/handles/cudnn.hpp"

#include <cudnn.h>

#include "tests/gpu/cuda/handles/problem.hpp"

using namespace cistern;
using namespace cistern::test;

namespace {

constexpr int kIn = 4, kOut = 8, kSide = 16, kFilter = 3;
constexpr std::size_t kInput = std::size_t(kIn) * kSide * kSide;
constexpr std::size_t kOutput = std::size_t(kOut) * kSide * kSide;
constexpr std::size_t kWeights = std::size_t(kOut) * kIn * kFilter * kFilter;
constexpr auto kAlgorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;

/// One value of the answer: cross-correlation, with a border of zeros.
float valueAt(const std::vector<float>& x, const std::vector<float>& w, int out, int row, int col) {
  float sum = 0;
  for (int in = 0; in < kIn; ++in) {
    for (int tap = 0; tap < kFilter * kFilter; ++tap) {
      const int r = row + tap / kFilter - 1, c = col + tap % kFilter - 1;
      if (r < 0 || c < 0 || r >= kSide || c >= kSide) continue;
      sum += x[std::size_t((in * kSide + r) * kSide + c)] *
             w[std::size_t((out * kIn + in) * kFilter * kFilter + tap)];
    }
  }
  return sum;
}

class Convolution {
 public:
  Convolution(GpuRig& rig, Stream stream, std::uint32_t seed)
      : host_x_(smallNumbers(kInput, seed)),
        host_w_(smallNumbers(kWeights, seed + 1000)),
        x_(rig, stream, host_x_),
        w_(rig, stream, host_w_),
        y_(rig, stream, kOutput) {
    describe();
    std::size_t bytes = 0;
    CISTERN_MUST(cudnnGetConvolutionForwardWorkspaceSize(
        getCudnnHandle(), x_shape_, w_shape_, convolution_, y_shape_, kAlgorithm, &bytes));
    work_ = std::make_unique<DeviceArray<char>>(rig, stream, bytes + 1);
  }
  ~Convolution() {
    cudnnDestroyConvolutionDescriptor(convolution_);
    cudnnDestroyFilterDescriptor(w_shape_);
    cudnnDestroyTensorDescriptor(x_shape_);
    cudnnDestroyTensorDescriptor(y_shape_);
  }
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;

  void queue() {
    const float one = 1, zero = 0;
    CISTERN_MUST(cudnnConvolutionForward(getCudnnHandle(), &one, x_shape_, x_.data(), w_shape_,
                                         w_.data(), convolution_, kAlgorithm, work_->data(),
                                         work_->bytes(), &zero, y_shape_, y_.data()));
  }
  bool right() {
    const std::vector<float> found = y_.values();
    for (int i = 0; i < int(kOutput); ++i) {
      const int out = i / (kSide * kSide), row = i / kSide % kSide, col = i % kSide;
      if (found[std::size_t(i)] != valueAt(host_x_, host_w_, out, row, col)) return false;
    }
    return true;
  }
  void poison() { y_.poison(); }

 private:
  void describe() {
    CISTERN_MUST(cudnnCreateTensorDescriptor(&x_shape_));
    CISTERN_MUST(cudnnCreateTensorDescriptor(&y_shape_));
    CISTERN_MUST(cudnnCreateFilterDescriptor(&w_shape_));
    CISTERN_MUST(cudnnCreateConvolutionDescriptor(&convolution_));
    CISTERN_MUST(cudnnSetTensor4dDescriptor(x_shape_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, kIn,
                                            kSide, kSide));
    CISTERN_MUST(cudnnSetTensor4dDescriptor(y_shape_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, kOut,
                                            kSide, kSide));
    CISTERN_MUST(cudnnSetFilter4dDescriptor(w_shape_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, kOut,
                                            kIn, kFilter, kFilter));
    CISTERN_MUST(cudnnSetConvolution2dDescriptor(convolution_, 1, 1, 1, 1, 1, 1,
                                                 CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  }

  std::vector<float> host_x_, host_w_;
  DeviceArray<float> x_, w_, y_;
  std::unique_ptr<DeviceArray<char>> work_;
  cudnnTensorDescriptor_t x_shape_ = nullptr, y_shape_ = nullptr;
  cudnnFilterDescriptor_t w_shape_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
};

}  // namespace

CISTERN_LIBRARY_TESTS("cuDNN", getCudnnHandle, Convolution)
