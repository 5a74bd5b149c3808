// The meaning of a vendor's error code to the engine. CUDA's runtime, CUDA's driver and HIP number
// these errors alike (alias.hpp asserts it), so one table serves all three and needs no SDK.
#pragma once

#include "cistern/status.hpp"

namespace cistern {

/// Pre: code is a failure, and not 600 ("not ready"), which is an answer.
ErrorKind errorKind(int code);

}  // namespace cistern
