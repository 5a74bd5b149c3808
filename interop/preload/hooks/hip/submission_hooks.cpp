// HIP's functions that submit work: see ../submission.hpp.
#include "interop/preload/hooks/hip/submitting.hpp"
#include "interop/preload/hooks/submission.hpp"
