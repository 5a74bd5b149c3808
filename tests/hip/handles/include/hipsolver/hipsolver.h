// What handles/hip uses of hipSOLVER, where the real header is not: the same names, types and
// values.
#pragma once

#include <hip/hip_runtime_api.h>

typedef enum {
  HIPSOLVER_STATUS_SUCCESS = 0,
  HIPSOLVER_STATUS_NOT_INITIALIZED = 1,
  HIPSOLVER_STATUS_ALLOC_FAILED = 2,
  HIPSOLVER_STATUS_INVALID_VALUE = 3,
  HIPSOLVER_STATUS_MAPPING_ERROR = 4,
  HIPSOLVER_STATUS_EXECUTION_FAILED = 5,
  HIPSOLVER_STATUS_INTERNAL_ERROR = 6,
  HIPSOLVER_STATUS_NOT_SUPPORTED = 7,
  HIPSOLVER_STATUS_ARCH_MISMATCH = 8,
  HIPSOLVER_STATUS_INVALID_ENUM = 10,
} hipsolverStatus_t;
typedef void* hipsolverHandle_t;

extern "C" {
hipsolverStatus_t hipsolverCreate(hipsolverHandle_t* handle);
hipsolverStatus_t hipsolverDestroy(hipsolverHandle_t handle);
hipsolverStatus_t hipsolverSetStream(hipsolverHandle_t handle, hipStream_t streamId);
hipsolverStatus_t hipsolverGetStream(hipsolverHandle_t handle, hipStream_t* streamId);
}
