#include "interop/recording/code_lines.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cistern::recording {
namespace {

/// Frames of a module, by the address in its file.
using Addresses = std::map<std::uint64_t, std::vector<Frame*>>;

// ---- Frames that say a module and an offset -----------------------------------------------------

std::optional<std::pair<std::string, std::uint64_t>> placeOf(const Frame& frame) {
  const std::size_t plus = frame.file.rfind("+0x");
  if (frame.line != 0 || plus == std::string::npos || plus == 0) return std::nullopt;
  const char* const digits = frame.file.c_str() + plus + 3;
  char* end = nullptr;
  const std::uint64_t address = std::strtoull(digits, &end, 16);
  if (end == digits || *end != '\0') return std::nullopt;
  return std::pair(frame.file.substr(0, plus), address);
}

// A file that others may write could be made to harm who reads its symbols.
bool isTrusted(const std::string& module) {
  struct stat facts {};
  if (module.front() != '/' || ::stat(module.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode))
    return false;
  const bool own = facts.st_uid == 0 || facts.st_uid == ::geteuid();
  return own && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// ---- The tool -----------------------------------------------------------------------------------

/// A program that names addresses as addr2line does, and its arguments before the module.
using Tool = std::vector<std::string>;

const std::array<Tool, 2>& tools() {
  static const std::array<Tool, 2> all = {
      Tool{"addr2line", "-f", "-C", "-i", "-a", "-e"},
      Tool{"llvm-symbolizer", "-f", "-C", "-i", "-a", "--output-style=GNU", "-e"}};
  return all;
}

/// A descriptor that is closed with this object.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  const int number_;
};

std::string readAll(int from) {
  std::string text;
  std::array<char, 65536> part{};
  while (true) {
    const ssize_t got = ::read(from, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part.data(), std::size_t(got));
  }
}

/// The output of the command if it reads `input`; none if it cannot be run.
std::optional<std::string> answerOf(std::vector<std::string> command, std::string_view input) {
  const Descriptor file(::memfd_create("addresses", MFD_CLOEXEC));
  if (file.number() < 0 ||
      ::pwrite(file.number(), input.data(), input.size(), 0) != ssize_t(input.size()))
    return std::nullopt;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const Descriptor from(ends[0]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, file.number(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  pid_t child = -1;
  const int failed =
      ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (failed != 0) return std::nullopt;
  std::string text = readAll(from.number());
  (void)::waitpid(child, nullptr, 0);
  return text;
}

// ---- What it answers ----------------------------------------------------------------------------

// "file.cpp:12 (discriminator 3)", "file.cpp:?", "??:0".
void setLine(Frame& frame, std::string_view place) {
  place = place.substr(0, place.find(" (discriminator"));
  const std::size_t colon = place.rfind(':');
  if (colon == place.npos || place.starts_with("??")) return;
  const unsigned long line =
      std::strtoul(std::string(place.substr(colon + 1)).c_str(), nullptr, 10);
  if (line == 0) return;
  frame.file = place.substr(0, colon);
  frame.line = std::uint32_t(line);
}

std::string_view takeLine(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// The innermost of functions that were inlined into each other comes first, and counts.
void read(std::string_view text, const Addresses& addresses) {
  while (!text.empty()) {
    const std::string_view head = takeLine(text);
    if (!head.starts_with("0x")) continue;
    const auto of = addresses.find(std::strtoull(std::string(head).c_str(), nullptr, 16));
    const std::string_view function = takeLine(text), place = takeLine(text);
    if (of == addresses.end()) continue;
    for (Frame* frame : of->second) {
      if (!function.starts_with("??")) frame->function = function;
      setLine(*frame, place);
    }
  }
}

// False if there is no tool.
bool nameModule(const std::string& module, const Addresses& addresses) {
  std::string input;
  for (const auto& [address, frames] : addresses) input += fmt::format("{:#x}\n", address);
  for (std::vector<std::string> command : tools()) {
    command.push_back(module);
    const std::optional<std::string> answer = answerOf(std::move(command), input);
    if (answer) return read(*answer, addresses), true;
  }
  return false;
}

// ---- Cistern's own frames -----------------------------------------------------------------------

bool isOwn(const Frame& frame) {
  return frame.function.starts_with("cistern::") || frame.function.starts_with("cistern_");
}

// Programs link Cistern in, and then only its symbols tell which frames are its own.
void dropOwn(Recording& of) {
  for (Place& place : of.places) {
    while (place.stack != 0 && isOwn(of.frames[of.stacks[place.stack].frame]))
      place.stack = of.stacks[place.stack].parent;
  }
}

}  // namespace

void nameCodeLines(std::vector<Recording>& recordings) {
  std::map<std::string, Addresses> modules;
  for (Recording& of : recordings) {
    for (Frame& frame : of.frames) {
      const auto place = placeOf(frame);
      if (place && isTrusted(place->first)) modules[place->first][place->second].push_back(&frame);
    }
  }
  for (const auto& [module, addresses] : modules) {
    if (nameModule(module, addresses)) continue;
    recordings.front().notes.emplace_back(
        "lines of C++ are not named: neither addr2line (binutils) nor llvm-symbolizer is "
        "installed");
    return;
  }
  for (Recording& of : recordings) dropOwn(of);
}

}  // namespace cistern::recording
