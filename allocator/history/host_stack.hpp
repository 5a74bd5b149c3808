// Call stacks of C++.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cistern/history.hpp"

namespace cistern {

/// Gathers the calling thread's stack: return addresses, innermost first, as StackGatherer's.
/// Frames of a shared library that Cistern is are left out, where they are innermost.
std::size_t gatherHostStack(std::uintptr_t* words, std::size_t most) noexcept;

/// The function that a return address is in, as far as the process knows. The file is
/// "module+0xoffset". Throws std::bad_alloc.
StackFrame hostFrameOf(std::uintptr_t word);

/// Whether the function is Cistern's own: such frames say nothing where they are innermost.
bool isOwnFunction(const StackFrame& frame) noexcept;

}  // namespace cistern
