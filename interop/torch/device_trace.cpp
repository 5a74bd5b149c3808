#include "device_trace.hpp"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace cistern_torch {
namespace {

constexpr std::size_t kWriteAtOnce = std::size_t{1} << 16;
constexpr std::uint64_t kNoBlock = ~std::uint64_t{0};

}  // namespace

DeviceTrace::DeviceTrace(const std::string& path, const std::string& name, Clock::time_point begun)
    : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)),
      unwritten_("# {\"name\": \"" + name + "\", \"stream_uses\": \"recorded\"}\n"),
      last_(begun),
      last_freed_(kNoBlock),
      streams_{{nullptr, 0}} {
  if (file_ < 0) failed_ = errno;
}

DeviceTrace::~DeviceTrace() {
  if (file_ >= 0) (void)::close(file_);
}

void DeviceTrace::allocated(std::size_t address, std::size_t bytes, const void* stream) {
  const std::size_t number = streams_.try_emplace(stream, streams_.size()).first->second;
  char line[96];
  std::snprintf(line, sizeof(line), "a %zu %zu %lld\n", bytes, number, sinceLast());
  add(line);
  live_[address] = next_++;
}

void DeviceTrace::freed(std::size_t address) {
  const auto known = live_.find(address);
  if (known == live_.end()) return;
  addOf('f', known->second);
  last_freed_ = known->second;
  used_[address] = known->second;
  live_.erase(known);
}

void DeviceTrace::usesEnded(std::size_t address) {
  const auto known = used_.find(address);
  if (known == used_.end()) return;
  if (known->second != last_freed_) addOf('e', known->second);
  used_.erase(known);
}

int DeviceTrace::finish() {
  std::vector<std::uint64_t> used;
  for (const auto& [address, number] : used_) used.push_back(number);
  std::sort(used.begin(), used.end());
  for (const std::uint64_t number : used) addOf('e', number);
  used_.clear();
  flush();
  return failed_;
}

// A rest below a microsecond is carried on to the next line.
long long DeviceTrace::sinceLast() {
  const auto since = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - last_);
  last_ += since;
  return since.count();
}

void DeviceTrace::addOf(char verb, std::uint64_t number) {
  char line[64];
  std::snprintf(line, sizeof(line), "%c %" PRIu64 " %lld\n", verb, number, sinceLast());
  add(line);
}

void DeviceTrace::add(const char* line) {
  last_freed_ = kNoBlock;
  unwritten_ += line;
  if (unwritten_.size() >= kWriteAtOnce) flush();
}

void DeviceTrace::flush() {
  std::size_t done = 0;
  while (failed_ == 0 && done < unwritten_.size()) {
    const ssize_t wrote = ::write(file_, unwritten_.data() + done, unwritten_.size() - done);
    if (wrote >= 0) done += std::size_t(wrote);
    if (wrote < 0 && errno != EINTR) failed_ = errno;
  }
  unwritten_.clear();
}

}  // namespace cistern_torch
