#include "allocator/engine/ledger.hpp"

#include <algorithm>

namespace cistern {
namespace {

std::int64_t shareOf(const std::array<StatArray, kSizeKindCount>& counts, std::size_t kind,
                     std::size_t stat) {
  return kind < kSizeKindCount ? counts[kind][stat] : counts[0][stat] + counts[1][stat];
}

template <class Counts>
std::int64_t total(const AllCounters& all, std::size_t kind, std::size_t stat, Counts counts) {
  std::int64_t sum = 0;
  if (all.resting) sum = shareOf(all.resting->*counts, kind, stat);
  for (const HeapCounters* one : all) sum += shareOf(one->*counts, kind, stat);
  return sum;
}

using Totals = std::array<StatArray, kLedgerKinds>;

inline void setCeiling(HeapCounters& own, std::size_t kind, std::size_t stat, std::int64_t to,
                       bool exact) {
  std::int64_t& ceiling = own.ceiling[kind][stat];
  ceiling = exact || noHitChanges(stat) ? to : std::max(ceiling, to);
}

// What the program has of it: not what lies in caches.
std::int64_t held(const HeapCounters& own, std::size_t kind, std::size_t stat) {
  return shareOf(own.current, kind, stat) - shareOf(own.cached, kind, stat);
}

// One heap has all there is to have.
void giveCeilings(HeapCounters& own, StatLedger& ledger) {
  for (std::size_t kind = 0; kind < kLedgerKinds; ++kind) {
    for (std::size_t stat = 0; stat < kStatCount; ++stat) {
      std::int64_t& peak = ledger.peak[kind][stat];
      peak = std::max(peak, held(own, kind, stat));
      setCeiling(own, kind, stat, peak + shareOf(own.cached, kind, stat), ledger.exact);
    }
  }
}

// Raises the peaks to the present totals; what lies between, for each of the heaps.
Totals sharesOf(const AllCounters& all, StatLedger& ledger) {
  Totals shares{};
  if (all.resting) shares = {all.resting->current[0], all.resting->current[1], StatArray{}};
  for (const HeapCounters* one : all) {
    for (std::size_t stat = 0; stat < kStatCount; ++stat) {
      shares[0][stat] += one->current[0][stat] - one->cached[0][stat];
      shares[1][stat] += one->current[1][stat] - one->cached[1][stat];
    }
  }
  for (std::size_t stat = 0; stat < kStatCount; ++stat)
    shares[kSizeKindCount][stat] = shares[0][stat] + shares[1][stat];
  for (std::size_t kind = 0; kind < kLedgerKinds; ++kind) {
    for (std::size_t stat = 0; stat < kStatCount; ++stat) {
      std::int64_t &share = shares[kind][stat], &peak = ledger.peak[kind][stat];
      peak = std::max(peak, share);
      share = peak - share;
      if (share != 0 && !all.empty())
        share /= std::int64_t(all.size());  // mostly it is; a division takes long
    }
  }
  return shares;
}

}  // namespace

void dealCeilings(const AllCounters& all, StatLedger& ledger) noexcept {
  if (all.size() == 1 && !all.resting) return giveCeilings(*all.front(), ledger);
  const Totals shares = sharesOf(all, ledger);
  for (HeapCounters* own : all) {
    for (std::size_t stat = 0; stat < kStatCount; ++stat) {
      const std::int64_t small = own->current[0][stat], large = own->current[1][stat];
      setCeiling(*own, 0, stat, small + shares[0][stat], ledger.exact);
      setCeiling(*own, 1, stat, large + shares[1][stat], ledger.exact);
      setCeiling(*own, 2, stat, small + large + shares[2][stat], ledger.exact);
    }
  }
}

MemoryStats::Values valuesOf(const AllCounters& all, const StatLedger& ledger, std::size_t kind) {
  MemoryStats::Values values;
  for (std::size_t stat = 0; stat < kStatCount; ++stat) {
    const std::int64_t current = total(all, kind, stat, &HeapCounters::current);
    const std::int64_t allocated = total(all, kind, stat, &HeapCounters::allocated);
    values[stat] = {current, ledger.peak[kind][stat], allocated - ledger.allocated_base[kind][stat],
                    allocated - current - ledger.freed_base[kind][stat]};
  }
  return values;
}

void startAccumulating(const AllCounters& all, StatLedger& ledger) noexcept {
  for (std::size_t kind = 0; kind < kLedgerKinds; ++kind) {
    for (std::size_t stat = 0; stat < kStatCount; ++stat) {
      const std::int64_t allocated = total(all, kind, stat, &HeapCounters::allocated);
      const std::int64_t current = total(all, kind, stat, &HeapCounters::current);
      ledger.allocated_base[kind][stat] = allocated;
      ledger.freed_base[kind][stat] = allocated - current;
    }
  }
}

}  // namespace cistern
