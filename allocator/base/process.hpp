// Whether the process is on its way out.
#pragma once

namespace cistern {

/// False once the process has begun to exit: then the driver may be gone already, and whoever would
/// give something back to it leaks it on purpose instead. Thread-safe. The first call must come
/// before main returns; an allocator's constructor makes it.
bool driverMayBeCalled() noexcept;

}  // namespace cistern
