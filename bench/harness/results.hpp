// What a run found: for each case and allocator the median over the repetitions, in ns per step.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/case.hpp"
#include "bench/peers/roster.hpp"

namespace cistern::bench {

struct Results {
  std::vector<PeerEntry> peers;
  std::vector<std::string> cases;  ///< in the order in which they ran
  std::vector<std::string> notes;  ///< what was left out and why, and what to mind
  std::map<std::string, double> medians;

  static std::string key(const std::string& what, const std::string& peer) {
    return what + "/" + peer;
  }
  std::optional<double> median(const std::string& what, const std::string& peer) const {
    const auto found = medians.find(key(what, peer));
    return found == medians.end() ? std::nullopt : std::optional(found->second);
  }
};

/// "case | cistern | peer ... | ratios", a table in Markdown, and the notes under it.
void printTable(const Results& results);

/// How the cost of the cases `prefix` N grows with N: each allocator's ns, and times `base`'s.
void printScaling(const Results& results, const std::string& prefix, const std::string& base);

}  // namespace cistern::bench
