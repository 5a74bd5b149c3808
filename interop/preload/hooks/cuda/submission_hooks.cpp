// The driver's functions that submit work: see ../submission.hpp.
#include "interop/preload/driver/driver.hpp"
#include "interop/preload/hooks/cuda/submitting.hpp"

namespace cistern::preload::cuda {
namespace {

CUstream streamIn(const CUlaunchConfig* config) {
  return config == nullptr ? nullptr : config->hStream;
}

}  // namespace
}  // namespace cistern::preload::cuda

#include "interop/preload/hooks/submission.hpp"
