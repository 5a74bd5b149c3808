// Functions that have a hook, as programs ask for them.
#pragma once

#include <cstddef>

namespace cistern::preload::GPU_NAMESPACE {

struct Row {
  const char* symbol = nullptr;  ///< as dlsym knows it
  void* hook = nullptr;
  bool per_thread = false;
  // CUDA's alone:
  const char* name = nullptr;  ///< as cuGetProcAddress knows it
  int version = 0;
};

struct Rows {
  const Row* first = nullptr;
  std::size_t count = 0;
  const Row* begin() const noexcept { return first; }
  const Row* end() const noexcept { return first + count; }
};

/// Those that submit work (submission_hooks.cpp).
Rows submittingRows() noexcept;

/// The answer in place of an unknown function of the driver: it does the same, and counts as work
/// on every stream (unknown_hooks.cpp).
void* unknownWork(void* function) noexcept;

}  // namespace cistern::preload::GPU_NAMESPACE
