// HIP's functions that are not known: see ../unknown.hpp.
#include "interop/preload/hooks/hip/undeclared.hpp"
#include "interop/preload/hooks/unknown.hpp"
