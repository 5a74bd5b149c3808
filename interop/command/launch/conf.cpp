#include "interop/command/launch/conf.hpp"

#include <cstdint>
#include <cstdlib>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/base/host_limits.hpp"
#include "allocator/base/printable.hpp"
#include "cistern/options.hpp"
#include "interop/command/console.hpp"

namespace cistern::command {
namespace {

/// The size that --overflow names; 0 if it names none.
std::uint64_t sizeOf(const std::string& text) try {
  const bool alone = text.find(',') == std::string::npos;
  return alone ? Options::parse("overflow:" + text).overflow : 0;
} catch (const OptionError&) {
  return 0;
}

// The library asks again before each page is made. Here nothing has begun yet.
void requireAdmitted(const std::string& place, std::uint64_t overflow) {
  const std::uint64_t left = overflow == 0 ? 0 : hostBytesLeftForPages();
  if (overflow <= left) return;
  throw UsageError(fmt::format("{}: {} are more than the {} that the host admits", place,
                               formatBytes(overflow), formatBytes(left)));
}

}  // namespace

std::string confOf(const LaunchSettings& settings) {
  const bool given = !settings.conf.empty();
  std::string conf = settings.conf;
  Options options;
  try {
    options = given ? Options::parse(conf) : Options::fromEnvironment();
  } catch (const OptionError& error) {
    throw UsageError(fmt::format("{}{}", given ? "--conf, " : "", error.what()));
  }
  if (settings.overflow.empty()) {
    requireAdmitted(given ? "--conf, overflow" : "CISTERN_CONF, overflow", options.overflow);
    return conf;
  }
  const std::uint64_t overflow = sizeOf(settings.overflow);
  if (overflow == 0) {
    throw UsageError(fmt::format("--overflow cannot be '{}'; allowed: a size from 2 MiB, as 64GiB",
                                 printable(settings.overflow)));
  }
  requireAdmitted("--overflow", overflow);
  if (const char* const named = std::getenv("CISTERN_CONF"); !given && named != nullptr)
    conf = named;
  return fmt::format("{}{}overflow:{}", conf, conf.empty() ? "" : ",", overflow);
}

}  // namespace cistern::command
