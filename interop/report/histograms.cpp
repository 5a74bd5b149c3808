// How large the allocations are, and how long they live.
#include <array>
#include <bit>

#include "interop/report/analyses.hpp"

namespace cistern::report {
namespace {

using nlohmann::json;

constexpr std::size_t kBins = 64;

/// The bin of n has the numbers from 2^n to 2^(n+1) - 1; bin 0 has 0, too.
std::size_t binOf(std::uint64_t value) {
  return value == 0 ? 0 : std::size_t(std::bit_width(value)) - 1;
}

struct Bins {
  std::array<std::uint64_t, kBins> allocations{}, bytes{};

  void add(std::size_t bin, std::uint64_t size) {
    ++allocations[bin];
    bytes[bin] += size;
  }
  json rows() const {
    json all = json::array();
    for (std::size_t bin = 0; bin < kBins; ++bin)
      if (allocations[bin] != 0) all.push_back({bin, allocations[bin], bytes[bin]});
    return all;
  }
};

}  // namespace

void addHistograms(const Study& study, json& model) {
  Bins sizes, lifetimes;
  std::vector<std::uint64_t> both(kBins * kBins);
  const auto& events = study.recorded().events;
  for (const Life& life : study.lives) {
    sizes.add(binOf(life.bytes), life.bytes);
    if (life.freed == study.events()) continue;  // nobody knows how long it lives
    const std::size_t bin = binOf(events[life.freed].time_us - events[life.born].time_us);
    lifetimes.add(bin, life.bytes);
    ++both[binOf(life.bytes) * kBins + bin];
  }
  model["sizes"] = sizes.rows();
  model["lifetimes"] = lifetimes.rows();
  json cells = json::array();
  for (std::size_t i = 0; i < both.size(); ++i)
    if (both[i] != 0) cells.push_back({i / kBins, i % kBins, both[i]});
  model["size_life"] = std::move(cells);
}

}  // namespace cistern::report
