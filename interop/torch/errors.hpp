// Cistern's exceptions as the ones that a PyTorch program expects.
#pragma once

#include <exception>

#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>

#include "cistern/error.hpp"
#include "cistern/report.hpp"
#include "cistern/status.hpp"
#include "torch_texts.hpp"

namespace cistern_torch {

/// Runs `work`, which allocates on the current device if it allocates. Its exceptions of Cistern's
/// leave as torch.OutOfMemoryError (PyTorch's words, then Cistern's report), as ValueError, or as
/// RuntimeError, with Cistern's text.
template <class Work>
auto asTorch(Work work) {
  try {
    return work();
  } catch (const cistern::OutOfMemory& failure) {
    const cistern::OutOfMemoryReport& report = failure.report();
    TORCH_CHECK_WITH(
        OutOfMemoryError, false,
        outOfMemoryText({report.requested, int(c10::cuda::current_device()), report.device_total,
                         report.device_free, report.location == cistern::Location::kHost}),
        "\ncistern: ", failure.what());
  } catch (const cistern::InvalidArgument& failure) {
    TORCH_CHECK_VALUE(false, "cistern: ", failure.what());
  } catch (const cistern::Error& failure) {
    TORCH_CHECK(false, "cistern: ", failure.what());
  } catch (const std::bad_alloc&) {
    TORCH_CHECK(false, "cistern: no host memory for the bookkeeping");
  }
}

}  // namespace cistern_torch
