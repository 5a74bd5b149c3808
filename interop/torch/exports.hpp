// How the functions are written that Python calls by name.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "torch_allocator.hpp"

#define CISTERN_TORCH_CALL extern "C" __attribute__((visibility("default")))

namespace cistern_torch {

/// Null, or why `verb` failed: until the thread's next call.
template <class Verb>
const char* told(Verb verb) {
  static thread_local std::string why;
  try {
    verb();
    return nullptr;
  } catch (const std::exception& error) {
    why = error.what();
    return why.c_str();
  }
}

/// What read(state) returns; 0 on a device that had no tensor yet, and if it fails. Pre: installed.
template <class Read>
auto readOf(int device, Read read) -> decltype(read(std::declval<DeviceState&>())) {
  DeviceState* const state = installed()->find(DeviceIndex(device));
  try {
    if (state != nullptr) return read(*state);
  } catch (const std::exception&) {  // as of a device without one
  }
  return {};
}

}  // namespace cistern_torch
