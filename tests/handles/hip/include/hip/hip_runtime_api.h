// The one type of HIP's runtime that the libraries' headers need, where the real header is not.
#pragma once

typedef struct ihipStream_t* hipStream_t;
