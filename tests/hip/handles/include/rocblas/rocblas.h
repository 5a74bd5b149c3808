// What handles/hip uses of rocBLAS, where the real header is not: the same names, types and values.
#pragma once

#include <hip/hip_runtime_api.h>

typedef enum rocblas_status_ {
  rocblas_status_success = 0,
  rocblas_status_memory_error = 5,
} rocblas_status;
typedef struct _rocblas_handle* rocblas_handle;

extern "C" {
const char* rocblas_status_to_string(rocblas_status status);
rocblas_status rocblas_create_handle(rocblas_handle* handle);
rocblas_status rocblas_destroy_handle(rocblas_handle handle);
rocblas_status rocblas_set_stream(rocblas_handle handle, hipStream_t stream);
rocblas_status rocblas_get_stream(rocblas_handle handle, hipStream_t* stream);
}
