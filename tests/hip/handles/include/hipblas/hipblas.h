// What handles/hip uses of hipBLAS, where the real header is not: the same names, types and values.
#pragma once

#include <hip/hip_runtime_api.h>

typedef enum {
  HIPBLAS_STATUS_SUCCESS = 0,
  HIPBLAS_STATUS_ALLOC_FAILED = 2,
} hipblasStatus_t;
typedef void* hipblasHandle_t;

extern "C" {
const char* hipblasStatusToString(hipblasStatus_t status);
hipblasStatus_t hipblasCreate(hipblasHandle_t* handle);
hipblasStatus_t hipblasDestroy(hipblasHandle_t handle);
hipblasStatus_t hipblasSetStream(hipblasHandle_t handle, hipStream_t streamId);
hipblasStatus_t hipblasGetStream(hipblasHandle_t handle, hipStream_t* streamId);
}
