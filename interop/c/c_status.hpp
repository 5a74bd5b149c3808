// Turns the exceptions of the C++ verbs into a status and a text.
#pragma once

#include <string>
#include <utility>

#include "cistern/cistern.h"
#include "cistern/error.hpp"
#include "interop/c/handle_table.hpp"

namespace cistern::capi {

/// A failure that the C API itself finds, with its status.
class Failure : public Error {
 public:
  Failure(cistern_status_t status, const std::string& text) : Error(text), status_(status) {}
  cistern_status_t status() const noexcept { return status_; }

 private:
  cistern_status_t status_;
};

/// The handle is not one of that kind.
[[noreturn]] void refuseHandle(Word handle, Kind wanted);
[[noreturn]] void refuseForked(Kind kind);
/// Throws CISTERN_INVALID_ARGUMENT for a null pointer; `name` is the parameter's.
template <class T>
void requireGiven(const T* pointer, const char* name) {
  if (pointer == nullptr)
    throw Failure(CISTERN_INVALID_ARGUMENT, std::string("the argument ") + name + " is null");
}

/// Throws Failure if the program's struct, of that type's name, has fewer fields than are read or
/// written.
template <class Struct>
void requireSize(const Struct& given, const char* name) {
  if (given.size < sizeof(Struct))
    throw Failure(CISTERN_INVALID_ARGUMENT,
                  std::string(name) + "::size is " + std::to_string(given.size) +
                      "; it must be set to " + std::to_string(sizeof(Struct)) + ", the struct's");
}

/// Sets the calling thread's last failure. If the host has no memory for the text, a shorter one is
/// used.
cistern_status_t fail(cistern_status_t status, const std::string& text) noexcept;
/// The same for the exception that is being handled.
cistern_status_t failCurrent() noexcept;

/// Runs it; no exception leaves.
template <class Call>
cistern_status_t guarded(Call&& call) noexcept {
  try {
    std::forward<Call>(call)();
    return CISTERN_OK;
  } catch (...) {
    return failCurrent();
  }
}

}  // namespace cistern::capi
