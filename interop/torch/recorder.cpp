#include "recorder.hpp"

#include <cstring>
#include <utility>

#include <unistd.h>

#include "cistern/python_stacks.hpp"
#include "exports.hpp"

namespace cistern_torch {
Recorder& Recorder::theOne() {
  static Recorder& one = *new Recorder;
  return one;
}

void Recorder::begin(const std::string& folder, const std::string& name) {
  const std::lock_guard lock(mutex_);
  devices_.clear();
  folder_ = folder;
  name_ = name;
  begun_ = std::chrono::steady_clock::now();
  process_ = getpid();
}

// Asked before the lock is taken: in a child of fork another thread may have held it.
const char* Recorder::end() {
  if (process_ != getpid()) return nullptr;
  const std::lock_guard lock(mutex_);
  int why = 0;
  for (auto& [device, trace] : devices_) {
    const int failed = trace.finish();
    if (why == 0) why = failed;
  }
  devices_.clear();
  process_ = 0;
  return why == 0 ? nullptr : std::strerror(why);
}

void Recorder::add(const theirs::TraceEntry& entry) {
  if (entry.action_ != Action::ALLOC && entry.action_ != Action::FREE_REQUESTED &&
      entry.action_ != Action::FREE_COMPLETED)
    return;
  if (process_ != getpid()) return;
  const std::lock_guard lock(mutex_);
  if (process_ == 0) return;
  const auto path = [&] { return folder_ + '/' + std::to_string(int(entry.device_)) + ".trace"; };
  auto known = devices_.find(entry.device_);
  // A free of what was allocated before the recording makes no trace.
  if (known == devices_.end() && entry.action_ != Action::ALLOC) return;
  if (known == devices_.end())
    known = devices_.try_emplace(entry.device_, path(), name_, begun_).first;
  DeviceTrace& trace = known->second;
  if (entry.action_ == Action::ALLOC) trace.allocated(entry.addr_, entry.size_, entry.stream_);
  if (entry.action_ == Action::FREE_REQUESTED) trace.freed(entry.addr_);
  if (entry.action_ == Action::FREE_COMPLETED) trace.usesEnded(entry.addr_);
}

}  // namespace cistern_torch

// The functions that python -m cistern.torch calls, by name.

/// Null, or why not.
CISTERN_TORCH_CALL const char* cistern_torch_trace_begin(const char* folder, const char* name) {
  using namespace cistern_torch;
  if (installed() == nullptr) return "cistern.torch is not enabled";
  static std::once_flag attached;
  std::call_once(attached, [] {
    installed()->attachAllocatorTraceTracker(
        [](const theirs::TraceEntry& entry) { Recorder::theOne().add(entry); });
  });
  Recorder::theOne().begin(folder, name);
  return nullptr;
}

/// Null, or why a file is not whole.
CISTERN_TORCH_CALL const char* cistern_torch_trace_end() {
  return cistern_torch::Recorder::theOne().end();
}

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
CISTERN_TORCH_CALL const char* cistern_torch_history_begin(const char* folder, const char* name) {
  using namespace cistern_torch;
  if (installed() == nullptr) return "cistern.torch is not enabled";
  HistoryFiles::theOne().begin(folder == nullptr ? "" : folder, name);
  installed()->everywhere([](DeviceState& state) {
    HistoryFiles::theOne().follow(int(state.device), state.allocator);
  });
  return nullptr;
}

/// Null, or why a file is not whole: until the next call.
CISTERN_TORCH_CALL const char* cistern_torch_history_end() {
  static std::string why;
  why = cistern_torch::HistoryFiles::theOne().end();
  return why.empty() ? nullptr : why.c_str();
}
