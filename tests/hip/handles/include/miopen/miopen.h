// What handles/hip uses of MIOpen, where the real header is not: the same names, types and values.
#pragma once

#include <hip/hip_runtime_api.h>

typedef enum {
  miopenStatusSuccess = 0,
  miopenStatusAllocFailed = 4,
} miopenStatus_t;
typedef struct miopenHandle* miopenHandle_t;
typedef hipStream_t miopenAcceleratorQueue_t;

extern "C" {
const char* miopenGetErrorString(miopenStatus_t error);
miopenStatus_t miopenCreate(miopenHandle_t* handle);
miopenStatus_t miopenDestroy(miopenHandle_t handle);
miopenStatus_t miopenSetStream(miopenHandle_t handle, miopenAcceleratorQueue_t streamID);
miopenStatus_t miopenGetStream(miopenHandle_t handle, miopenAcceleratorQueue_t* streamID);
}
