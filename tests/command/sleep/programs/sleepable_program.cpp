// A program on the simulated device that says what its allocators have reserved. Each line on its
// standard input is a command; the answer is one line.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "cistern/allocator.hpp"
#include "cistern/device.hpp"
#include "cistern/statistics.hpp"

namespace {

constexpr std::size_t kMiB = 1 << 20;

/// An allocator that has had 64 MiB, and keeps 8 MiB of them in use.
struct Served {
  std::unique_ptr<cistern::Device> device = cistern::openDevice("sim");
  cistern::CachingAllocator allocator{*device};

  Served() {
    (void)allocator.allocate(8 * kMiB, nullptr);
    cache();
  }
  void cache() { allocator.free(allocator.allocate(56 * kMiB, nullptr)); }
  std::int64_t reserved() {
    return allocator.memoryStats()[cistern::Stat::kReservedBytes].current / std::int64_t(kMiB);
  }
};

std::vector<std::unique_ptr<Served>> all;

/// The child does as its parent: it reads commands until its input ends.
int child() {
  const pid_t made = fork();
  if (made == 0) {
    for (auto& each : all) (void)each.release();
    all.clear();
  }
  return made;
}

std::string answerTo(const std::string& command) {
  if (command == "make") all.push_back(std::make_unique<Served>());
  if (command == "drop") all.pop_back();
  if (command == "cache") all.back()->cache();
  if (command == "close")
    for (int file = 3; file < 64; ++file) (void)close(file);
  std::int64_t reserved = 0;
  for (auto& each : all) reserved += each->reserved();
  return std::to_string(reserved);
}

}  // namespace

int main() {
  for (std::string command; std::getline(std::cin, command);) {
    if (command != "fork") {
      std::cout << answerTo(command) << std::endl;
    } else if (const pid_t made = child(); made != 0) {
      std::cout << made << std::endl;
      (void)waitpid(made, nullptr, 0);
    }
  }
}
