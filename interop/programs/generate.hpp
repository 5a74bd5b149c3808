// Programs that nobody recorded: made up from a kind and a seed, to be replayed as recorded ones
// are. The same kind and seed make the same trace on every platform. Read next: kinds.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interop/recording/recording_model.hpp"

namespace cistern::programs {

struct Kind {
  std::string_view name;
  std::string_view text;  ///< for a table: what such a program does
  /// Whether "all" stands for it, too. Tables of measurements name their programs by "all", so a
  /// new kind stays out.
  bool in_all = true;
  bool in_steps = false;  ///< whether a recipe says how many steps it has
};

std::span<const Kind> kinds();

inline constexpr std::uint64_t kUsualSteps = 60, kMostSteps = 10'000;

/// One program: an index into kinds(), and the seed.
struct Recipe {
  std::size_t kind = 0;
  std::uint64_t seed = 0;
  std::uint64_t steps = kUsualSteps;  ///< of a kind that is `in_steps`
  std::uint64_t jitter = 0;           ///< percent of frees that come late: kinds.hpp

  std::string name() const;  ///< "train:7", "periodic:7:steps=200:jitter=25"
  friend bool operator==(const Recipe&, const Recipe&) = default;
};

inline constexpr std::uint64_t kMostSeed = 1'000'000'000;
inline constexpr std::uint64_t kMostRecipes = 100'000;

/// The programs that "KIND:SEED" or "KIND:FROM-TO" names; KIND may be "all", for each seed one of
/// every kind that is `in_all`. ":steps=N" and ":jitter=PERCENT" may follow. Throws InvalidArgument
/// that names what is wrong and what is allowed.
std::vector<Recipe> parseRecipes(std::string_view text);

/// Its peak is 0.5 to 60 GB, in 5,000 to 65,000 events, unless the recipe says how many steps or
/// delays frees.
recording::Recording generate(const Recipe& recipe);

}  // namespace cistern::programs
