#include "interop/command/sleep/kept_need.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cistern::command {
namespace {

// Another process that gets the number has another start.
std::string pathOf(const NamedProcess& process) {
  return fmt::format("/dev/shm/cistern-asleep-{}-{}", process.number(), process.start());
}

}  // namespace

std::string keepNeed(const NamedProcess& process, const std::vector<DeviceUse>& use) {
  forgetNeed(process);
  std::vector<std::uint64_t> need;
  for (const DeviceUse& each : use) need.push_back(each.process_bytes.value_or(0));
  if (std::ranges::all_of(need, [](std::uint64_t bytes) { return bytes == 0; })) return {};
  const std::string path = pathOf(process), text = fmt::format("{}\n", fmt::join(need, " "));
  const OpenFile file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file >= 0 && write(file, text.data(), text.size()) == ssize_t(text.size())) {
    (void)!fchown(file, process.user(), gid_t(-1));  // if root asks now, and the user at the wake
    return {};
  }
  return fmt::format("{}: {}", path, std::strerror(errno));
}

std::vector<std::uint64_t> needOf(const NamedProcess& process) {
  const OpenFile file(
      open(pathOf(process).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat facts {};
  if (file < 0 || fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode)) return {};
  if (facts.st_uid != process.user() && facts.st_uid != geteuid()) return {};
  std::array<char, 4096> text{};  // with a zero behind what is read
  (void)!read(file, text.data(), text.size() - 1);
  std::istringstream numbers(text.data());
  std::vector<std::uint64_t> need;
  for (std::uint64_t bytes = 0; numbers >> bytes;) need.push_back(bytes);
  return need;
}

void forgetNeed(const NamedProcess& process) { (void)unlink(pathOf(process).c_str()); }

}  // namespace cistern::command
