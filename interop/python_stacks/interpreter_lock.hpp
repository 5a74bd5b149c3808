// A wait that does not keep Python from running.
#pragma once

#include "interop/python_stacks/interpreter.hpp"

namespace cistern::python {

/// While it lives, the calling thread has given the interpreter's lock up, if it had it.
class WithoutInterpreterLock {
 public:
  WithoutInterpreterLock() {
    if (const Interpreter* const python = running()) {
      if (python->own_state() != nullptr && python->holds_lock() != 0) state_ = python->save();
    }
  }
  ~WithoutInterpreterLock() {
    if (state_ != nullptr) running()->restore(state_);
  }
  WithoutInterpreterLock(const WithoutInterpreterLock&) = delete;
  WithoutInterpreterLock& operator=(const WithoutInterpreterLock&) = delete;

 private:
  /// Null where the process has no interpreter.
  static const Interpreter* running() {
    static Interpreter python{};
    static const bool found = python.find();
    return found && python.initialized() != 0 ? &python : nullptr;
  }

  ThreadState* state_ = nullptr;
};

}  // namespace cistern::python
