// cuSOLVER: a QR factorisation, checked by R'R = A'A. Matrices are column-major.
#include "cistern/handles/cusolver.hpp"

#include <cusolverDn.h>

#include "tests/gpu/cuda/handles/problem.hpp"

using namespace cistern;
using namespace cistern::test;

namespace {

constexpr int kTall = 96, kWide = 48;
constexpr std::size_t kCount = std::size_t(kTall) * kWide;

/// m'm of the first `rows` rows; with `upper`, of the upper triangle alone.
std::vector<float> gram(const std::vector<float>& m, std::size_t rows, bool upper) {
  const auto at = [&](std::size_t row, std::size_t col) {
    return upper && row > col ? 0.0 : double(m[col * kTall + row]);
  };
  std::vector<float> products;
  for (std::size_t i = 0; i < kWide; ++i) {
    for (std::size_t j = 0; j < kWide; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < rows; ++k) sum += at(k, i) * at(k, j);
      products.push_back(float(sum));
    }
  }
  return products;
}

class Qr {
 public:
  Qr(GpuRig& rig, Stream stream, std::uint32_t seed)
      : host_(smallNumbers(kCount, seed)),
        given_(rig, stream, host_),
        a_(rig, stream, kCount),
        tau_(rig, stream, kWide),
        info_(rig, stream, 1) {
    int words = 0;
    CISTERN_MUST(cusolverDnSgeqrf_bufferSize(getCurrentCUDASolverDnHandle(), kTall, kWide,
                                             a_.data(), kTall, &words));
    work_ = std::make_unique<DeviceArray<float>>(rig, stream, std::size_t(words) + 1);
    words_ = words;
  }

  void queue() {
    a_.copyFrom(given_);
    CISTERN_MUST(cusolverDnSgeqrf(getCurrentCUDASolverDnHandle(), kTall, kWide, a_.data(), kTall,
                                  tau_.data(), work_->data(), words_, info_.data()));
  }
  bool right() {
    return info_.values()[0] == 0 &&
           near(gram(a_.values(), kWide, true), gram(host_, kTall, false), 0.01F);
  }
  void poison() {
    a_.poison();
    info_.poison();
  }

 private:
  std::vector<float> host_;
  DeviceArray<float> given_, a_, tau_;
  DeviceArray<int> info_;
  std::unique_ptr<DeviceArray<float>> work_;
  int words_ = 0;
};

}  // namespace

CISTERN_LIBRARY_TESTS("cuSOLVER", getCurrentCUDASolverDnHandle, Qr)
