// The arguments of `cistern replay` as they were written, and the settings that they mean.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interop/command/replay/replay_settings.hpp"

namespace cistern::command {

struct Arguments {
  std::vector<std::string> traces;
  std::vector<std::string> generate;
  std::vector<std::string> policies;
  std::string device = "auto";
  std::string capacity;
  bool fit = false;
  std::string gpu_lag;
  std::uint64_t repeat = 1;
  std::size_t threads = 1;
  std::vector<std::string> conf;
  std::string page_size;
  std::string max_unpacked;
  std::optional<std::uint32_t> gpu;
  bool no_recycle = false;
  bool check = false;
  bool json = false;
  bool csv = false;
  std::string plot;
  std::string progress;
};

/// A size in bytes: the value `text` of an option. None where `text` is empty, as where the option
/// is not given. A number without a unit is bytes, and so few of them that a unit is missing are
/// refused. Throws UsageError, which names both.
std::optional<std::uint64_t> parseSize(std::string_view option, const std::string& text);

/// Includes the options from the environment. Throws UsageError or OptionError, which name the
/// given value and the allowed ones.
ReplaySettings settingsFrom(const Arguments& a);

}  // namespace cistern::command
