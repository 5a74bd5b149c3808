// The functions of a vendor by their names: those that have a hook, as programs ask for them, and
// those that need none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <unordered_set>

#include "interop/preload/driver/driver.hpp"

// For the assembler, which knows no namespaces: cistern_cuda_stubs, cistern_hip_stubs.
#define CISTERN_LABEL_(vendor, name) "cistern_" #vendor "_" #name
#define CISTERN_LABEL_OF(vendor, name) CISTERN_LABEL_(vendor, name)
#define CISTERN_LABEL(name) CISTERN_LABEL_OF(GPU_NAMESPACE, name)

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

// ---- Functions that submit no work that touches memory ------------------------------------------
//
// A function that is not known by name counts as one that may submit work to any stream. So a
// driver that is newer than this build costs a little time, and no correctness.

/// Whether the function of that name, in whichever version and spelling, submits nothing. Waiting
/// for an event and recording one are harmless: neither touches memory, and work submitted behind
/// them is ordered itself. HIP's are known up to HIP 7.2.
bool isHarmless(std::string_view name);

using NameSet = std::unordered_set<std::string_view>;

/// The names in the text, which has a space or a line's end between two, and which stays.
inline NameSet nameSet(std::string_view text) {
  NameSet names;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    if (end > at) names.insert(text.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

}  // namespace cistern::preload::GPU_NAMESPACE
