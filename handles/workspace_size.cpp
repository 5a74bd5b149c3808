#include "handles/workspace_size.hpp"

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/base/text.hpp"
#include "cistern/error.hpp"

namespace cistern::handles {
namespace {

constexpr const char* kConfig = "CUBLAS_WORKSPACE_CONFIG";
constexpr const char* kLtSize = "CUBLASLT_WORKSPACE_SIZE";
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;  // more than a device has

[[noreturn]] void reject(const char* name, std::string_view text, const std::string& why) {
  throw OptionError(fmt::format(
      "{} is '{}': {}; it must be {}, up to 1 TiB in all", name, text, why,
      name == kConfig ? ":KiB:count, any number of times (:4096:2:16:8)" : "a number of KiB"));
}

std::uint64_t countIn(const char* name, std::string_view text, std::string_view part) {
  const std::optional<std::uint64_t> count = readCount(part);
  if (!count) reject(name, text, fmt::format("'{}' is not a whole number", part));
  return *count;
}

/// `used` and `count` times `kib` KiB more.
std::uint64_t addUp(const char* name, std::string_view text, std::uint64_t used, std::uint64_t kib,
                    std::uint64_t count) {
  const std::uint64_t room = (kMostBytes - used) / kKiB;
  if (count != 0 && kib > room / count) reject(name, text, "too much");
  return used + kib * count * kKiB;
}

}  // namespace

std::size_t parseWorkspaceConfig(std::string_view text) {
  std::string_view rest = trimmed(text);
  if (rest.empty() || rest.front() != ':') reject(kConfig, text, "it does not begin with a colon");
  rest.remove_prefix(1);
  std::uint64_t total = 0;
  for (bool more = true; more;) {
    const std::string_view kib = cutAt(rest, ':', more);
    if (!more) reject(kConfig, text, fmt::format("no count follows '{}'", kib));
    const std::string_view count = cutAt(rest, ':', more);
    total = addUp(kConfig, text, total, countIn(kConfig, text, kib), countIn(kConfig, text, count));
  }
  return total;
}

std::size_t parseLtWorkspaceSize(std::string_view text) {
  return addUp(kLtSize, text, 0, countIn(kLtSize, text, trimmed(text)), 1);
}

// The size that a Hopper's fastest kernels need, and cuBLAS's own ":4096:2:16:8".
std::size_t defaultWorkspaceBytes(int compute_major) {
  return compute_major >= 9 ? 32 * kMiB : 8'519'680;
}

std::size_t cublasWorkspaceBytes(int compute_major) {
  const char* const config = std::getenv(kConfig);
  return config ? parseWorkspaceConfig(config) : defaultWorkspaceBytes(compute_major);
}

std::size_t cublasLtWorkspaceBytes(int compute_major) {
  const char* const size = std::getenv(kLtSize);
  return size ? parseLtWorkspaceSize(size) : defaultWorkspaceBytes(compute_major);
}

}  // namespace cistern::handles
