#include "history_files.hpp"

#include <exception>
#include <utility>

#include <unistd.h>

#include "cistern/python_stacks.hpp"
#include "torch_allocator.hpp"

namespace cistern_torch {

HistoryFiles& HistoryFiles::theOne() {
  static HistoryFiles& one = *new HistoryFiles;
  return one;
}

void HistoryFiles::begin(const std::string& folder, const std::string& name) {
  const std::lock_guard lock(mutex_);
  wanted_ = Wanted{folder, name};
  process_ = getpid();
  failed_.clear();
}

// follow() and end() ask for the process before they take the lock: in a child of fork another
// thread may have held it.
void HistoryFiles::follow(int device, cistern::CachingAllocator& allocator) {
  if (process_ != getpid()) return;
  const std::lock_guard lock(mutex_);
  if (!wanted_) return;
  try {
    cistern::HistorySettings settings;
    if (!wanted_->folder.empty())
      settings.file = wanted_->folder + '/' + std::to_string(device) + ".trace";
    settings.stacks = cistern::Stacks::kAllocations;
    settings.gatherer = cistern::pythonStacks();
    settings.name = wanted_->name;
    allocator.recordHistory(settings);
  } catch (const std::exception& error) {
    keep(error);
  }
}

std::string HistoryFiles::end() {
  if (process_ != getpid()) return {};
  const std::lock_guard lock(mutex_);
  wanted_.reset();
  installed()->everywhere([&](DeviceState& state) {
    try {
      state.allocator.stopHistory();
    } catch (const std::exception& error) {
      keep(error);
    }
  });
  return std::exchange(failed_, {});
}

void HistoryFiles::keep(const std::exception& error) {
  if (failed_.empty()) failed_ = error.what();
}

}  // namespace cistern_torch

// The functions that python -m cistern.torch calls, by name.

/// A null folder: to memory. Null, or why not: static storage.
extern "C" __attribute__((visibility("default"))) const char* cistern_torch_history_begin(
    const char* folder, const char* name) {
  using namespace cistern_torch;
  if (installed() == nullptr) return "cistern.torch is not enabled";
  HistoryFiles::theOne().begin(folder == nullptr ? "" : folder, name);
  installed()->everywhere([](DeviceState& state) {
    HistoryFiles::theOne().follow(int(state.device), state.allocator);
  });
  return nullptr;
}

/// Null, or why a file is not whole: until the next call.
extern "C" __attribute__((visibility("default"))) const char* cistern_torch_history_end() {
  static std::string why;
  why = cistern_torch::HistoryFiles::theOne().end();
  return why.empty() ? nullptr : why.c_str();
}
