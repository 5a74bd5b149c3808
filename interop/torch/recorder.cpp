#include "recorder.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstring>

#include "allocator.hpp"

namespace cistern_torch {

Recorder& Recorder::theOne() {
  static Recorder& one = *new Recorder;
  return one;
}

const char* Recorder::begin(const char* path, const std::string& name) {
  const std::lock_guard lock(mutex_);
  file_.reset(std::fopen(path, "w"));
  if (file_ == nullptr) return std::strerror(errno);
  std::fprintf(file_.get(), "# {\"name\": \"%s\"}\n", name.c_str());
  last_ = std::chrono::steady_clock::now();
  next_ = 0;
  numbers_.clear();
  streams_ = {{0, 0}};
  return nullptr;
}

const char* Recorder::end() {
  const std::lock_guard lock(mutex_);
  if (file_ == nullptr) return nullptr;
  const bool whole = std::fflush(file_.get()) == 0 && std::ferror(file_.get()) == 0;
  const int why = errno;
  file_.reset();
  return whole ? nullptr : std::strerror(why);
}

void Recorder::add(const theirs::TraceEntry& entry) {
  const std::lock_guard lock(mutex_);
  if (file_ == nullptr) return;
  const bool allocated = entry.action_ == Action::ALLOC;
  if (!allocated && entry.action_ != Action::FREE_REQUESTED) return;
  const auto known = numbers_.find(entry.addr_);
  if (!allocated && known == numbers_.end()) return;  // from before the recording
  const auto now = std::chrono::steady_clock::now();
  const auto since = std::chrono::duration_cast<std::chrono::microseconds>(now - last_);
  last_ += since;
  if (!allocated) {
    std::fprintf(file_.get(), "f %" PRIu64 " %lld\n", known->second, (long long)since.count());
    numbers_.erase(known);
    return;
  }
  const auto stream = reinterpret_cast<std::uintptr_t>(entry.stream_);
  const std::size_t number = streams_.try_emplace(stream, streams_.size()).first->second;
  std::fprintf(file_.get(), "a %zu %zu %lld\n", entry.size_, number, (long long)since.count());
  numbers_[entry.addr_] = next_++;
}

}  // namespace cistern_torch

// What python -m cistern.torch calls, by name.

/// Null, or why not.
extern "C" __attribute__((visibility("default"))) const char* cistern_torch_trace_begin(
    const char* path, const char* name) {
  using namespace cistern_torch;
  if (installed() == nullptr) return "cistern.torch is not enabled";
  static std::once_flag attached;
  std::call_once(attached, [] {
    installed()->attachAllocatorTraceTracker(
        [](const theirs::TraceEntry& entry) { Recorder::theOne().add(entry); });
  });
  return Recorder::theOne().begin(path, name);
}

/// Null, or why the file is not whole.
extern "C" __attribute__((visibility("default"))) const char* cistern_torch_trace_end() {
  return cistern_torch::Recorder::theOne().end();
}
