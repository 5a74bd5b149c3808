#include "recorder.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "torch_allocator.hpp"

namespace cistern_torch {
namespace {

constexpr std::size_t kWriteAtOnce = std::size_t{1} << 16;

}  // namespace

// ---- One device
// ----------------------------------------------------------------------------------

DeviceTrace::DeviceTrace(const std::string& path, const std::string& name,
                         std::chrono::steady_clock::time_point begun)
    : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)),
      unwritten_("# {\"name\": \"" + name + "\"}\n"),
      last_(begun),
      streams_{{0, 0}} {
  if (file_ < 0) failed_ = errno;
}

DeviceTrace::~DeviceTrace() {
  if (file_ >= 0) (void)::close(file_);
}

int DeviceTrace::flush() {
  std::size_t done = 0;
  while (failed_ == 0 && done < unwritten_.size()) {
    const ssize_t wrote = ::write(file_, unwritten_.data() + done, unwritten_.size() - done);
    if (wrote >= 0) done += std::size_t(wrote);
    if (wrote < 0 && errno != EINTR) failed_ = errno;
  }
  unwritten_.clear();
  return failed_;
}

void DeviceTrace::add(const theirs::TraceEntry& entry) {
  const bool allocated = entry.action_ == Action::ALLOC;
  const auto known = numbers_.find(entry.addr_);
  if (!allocated && known == numbers_.end()) return;  // from before the recording
  const auto now = std::chrono::steady_clock::now();
  const auto since = std::chrono::duration_cast<std::chrono::microseconds>(now - last_);
  last_ += since;
  char line[96];
  if (allocated) {
    const auto stream = reinterpret_cast<std::uintptr_t>(entry.stream_);
    const std::size_t number = streams_.try_emplace(stream, streams_.size()).first->second;
    std::snprintf(line, sizeof(line), "a %zu %zu %lld\n", entry.size_, number,
                  (long long)since.count());
    numbers_[entry.addr_] = next_++;
  } else {
    std::snprintf(line, sizeof(line), "f %" PRIu64 " %lld\n", known->second,
                  (long long)since.count());
    numbers_.erase(known);
  }
  unwritten_ += line;
  if (unwritten_.size() >= kWriteAtOnce) (void)flush();
}

// ---- All of them
// ---------------------------------------------------------------------------------

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
    const int failed = trace.flush();
    if (why == 0) why = failed;
  }
  devices_.clear();
  process_ = 0;
  return why == 0 ? nullptr : std::strerror(why);
}

void Recorder::add(const theirs::TraceEntry& entry) {
  if (entry.action_ != Action::ALLOC && entry.action_ != Action::FREE_REQUESTED) return;
  if (process_ != getpid()) return;
  const std::lock_guard lock(mutex_);
  if (process_ == 0) return;
  const auto path = [&] { return folder_ + '/' + std::to_string(int(entry.device_)) + ".trace"; };
  auto known = devices_.find(entry.device_);
  if (known == devices_.end())
    known = devices_.try_emplace(entry.device_, path(), name_, begun_).first;
  known->second.add(entry);
}

}  // namespace cistern_torch

// The functions that python -m cistern.torch calls, by name.

/// Null, or why not.
extern "C" __attribute__((visibility("default"))) const char* cistern_torch_trace_begin(
    const char* folder, const char* name) {
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
extern "C" __attribute__((visibility("default"))) const char* cistern_torch_trace_end() {
  return cistern_torch::Recorder::theOne().end();
}

/// The most that was reserved on the device since the process began, whatever statistics were
/// reset; 0 for a device that was not used.
extern "C" __attribute__((visibility("default"))) unsigned long long cistern_torch_peak_reserved(
    int device) {
  using namespace cistern_torch;
  return installed() == nullptr ? 0 : installed()->peakReserved(DeviceIndex(device));
}
