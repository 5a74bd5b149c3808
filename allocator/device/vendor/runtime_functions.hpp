// The header of the SDK that this compilation is for, how its names begin, and the functions of its
// runtime that Cistern calls. cuda_functions.hpp and hip_functions.hpp each define the same macros.
#pragma once

#if defined(CISTERN_VENDOR_CUDA)
#include "allocator/device/vendor/cuda_functions.hpp"
#elif defined(CISTERN_VENDOR_HIP)
#include "allocator/device/vendor/hip_functions.hpp"
#else
#error "define CISTERN_VENDOR_CUDA or CISTERN_VENDOR_HIP"
#endif
