// The driver's functions that are not known: see ../unknown.hpp.
#include "interop/preload/hooks/cuda/undeclared.hpp"
#include "interop/preload/hooks/unknown.hpp"
