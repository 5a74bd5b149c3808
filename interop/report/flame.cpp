// Bytes by stack: at the peak, at the end, and of the blocks that live longest.
#include <algorithm>
#include <map>

#include "interop/report/analyses.hpp"
#include "interop/report/living.hpp"

namespace cistern::report {
namespace {

using nlohmann::json;

constexpr std::size_t kMostStacks = 2'000;

struct Weight {
  std::uint64_t bytes = 0, blocks = 0;
  double life_us = 0;  ///< of all blocks together
};
using Weights = std::map<std::uint32_t, Weight>;

std::vector<std::pair<std::uint32_t, Weight>> heaviest(const Weights& weights) {
  std::vector<std::pair<std::uint32_t, Weight>> rows(weights.begin(), weights.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  if (rows.size() > kMostStacks) rows.resize(kMostStacks);
  return rows;
}

json livingByStack(const Study& study, std::uint64_t done) {
  Weights weights;
  for (const std::uint32_t number : livingAfter(study.lives, done, study.sleeps).held) {
    Weight& weight = weights[study.lives[number].stack];
    weight.bytes += study.lives[number].bytes;
    ++weight.blocks;
  }
  json rows = json::array();
  for (const auto& [stack, weight] : heaviest(weights))
    rows.push_back({stack, weight.bytes, weight.blocks});
  return rows;
}

std::uint64_t lengthOf(const Study& study, const Life& life) {
  return study.timeAfter(std::uint64_t(life.freed) + (life.freed < study.events() ? 1 : 0)) -
         study.timeAfter(std::uint64_t(life.born) + 1);
}

/// Blocks that live at least half as long as the one that lives longest.
json longestByStack(const Study& study) {
  std::uint64_t longest = 0;
  for (const Life& life : study.lives) longest = std::max(longest, lengthOf(study, life));
  Weights weights;
  for (const Life& life : study.lives) {
    const std::uint64_t length = lengthOf(study, life);
    if (length < longest - longest / 2) continue;
    Weight& weight = weights[life.stack];
    weight.bytes += life.bytes;
    weight.life_us += double(length);
    ++weight.blocks;
  }
  json rows = json::array();
  for (const auto& [stack, weight] : heaviest(weights))
    rows.push_back({stack, weight.bytes, weight.blocks,
                    std::uint64_t(weight.life_us / double(weight.blocks))});
  return rows;
}

}  // namespace

json flame(const Study& study) {
  return {{"peak", livingByStack(study, study.peakDone())},
          {"end", livingByStack(study, study.events())},
          {"longest", longestByStack(study)}};
}

}  // namespace cistern::report
