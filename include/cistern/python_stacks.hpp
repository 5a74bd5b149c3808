// Call stacks of Python, for the history of an allocator (cistern/history.hpp). The library finds
// the process's interpreter by the names of its functions, and is not linked against Python. So one
// library serves every Python from 3.9 on, and programs without one.
#pragma once

#include <memory>

#include "cistern/history.hpp"

namespace cistern {

/// Gathers the calling thread's frames of Python. Equal lines of equal functions are equal words.
/// Null if the process has no interpreter, or one that lacks a needed function. Frames of the
/// package `cistern` are left out at both ends of a stack. A thread without frames of Python has
/// its C++ stack.
///
/// As PyTorch's recorder does, gather() takes the interpreter's lock for the calling thread, if the
/// thread has released it. So no lock may be held that a thread of Python waits for. A thread that
/// never ran Python takes no lock of the interpreter's. frameOf() never takes the interpreter's
/// lock: a frame's text is read when the frame is first seen.
///
/// Thread-safe. The same object at each call; it is never destroyed.
CISTERN_API std::shared_ptr<StackGatherer> pythonStacks();

}  // namespace cistern
