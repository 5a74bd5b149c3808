#include "interop/report/holders.hpp"

#include <algorithm>
#include <tuple>

namespace cistern::report {
namespace {

auto keyOf(const Life& life) { return std::tie(life.stack, life.label, life.pool, life.stream); }

auto keyOf(const Holder& holder) {
  return std::tie(holder.stack, holder.label, holder.pool, holder.stream);
}

}  // namespace

std::vector<Holder> holdersOf(const std::vector<Life>& lives, const Living& living) {
  std::vector<std::uint32_t> held = living.held;
  std::sort(held.begin(), held.end(),
            [&](std::uint32_t a, std::uint32_t b) { return keyOf(lives[a]) < keyOf(lives[b]); });
  std::vector<Holder> holders;
  for (const std::uint32_t number : held) {
    const Life& life = lives[number];
    if (holders.empty() || keyOf(holders.back()) != keyOf(life))
      holders.push_back({life.stack, life.label, life.pool, life.stream});
    Holder& holder = holders.back();
    ++holder.blocks;
    holder.bytes += life.bytes;
    holder.largest = std::max(holder.largest, life.bytes);
  }
  std::stable_sort(holders.begin(), holders.end(),
                   [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
  return holders;
}

}  // namespace cistern::report
