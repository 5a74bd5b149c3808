// What serving a miss may cost, and so how large its new pages are. See mover.hpp.
#include <algorithm>
#include <bit>

#include "allocator/engine/pages/mover.hpp"

namespace cistern::pages {
namespace {

/// What growth is measured by: pages of 20 MiB, as PyTorch's expandable segments have them.
constexpr double kPlainUnits = 10;
/// The largest page that is made by choice.
constexpr std::uint64_t kMostUnits = 16;
/// A page is at most this part of what is reserved, of the limit, and of what is left below it: so
/// many may be pinned down by one small block each before it shows.
constexpr std::uint64_t kPartOfReserved = 1024, kPartOfLimit = 2048, kPartOfLeft = 16;

std::uint32_t wholeUnits(std::uint64_t bytes) {
  const std::uint64_t units = std::clamp<std::uint64_t>(bytes / kUnit, 1, kMostUnits);
  return std::uint32_t(std::bit_floor(units));
}

}  // namespace

// What a heap takes beyond the most that it ever had, it would have grown by without recycling too.
double Mover::credit() const {
  const double plain = ground_.create_cost.mean() + ground_.map_cost.mean();
  std::uint64_t coming = gapUnits() * kUnit;
  for (const Step& step : steps_) coming += step.source == &heap_ ? 0 : step.page->bytes();
  const std::uint64_t high = std::max(window_.range->most_backed, backed_before_);
  const std::uint64_t then = backed_before_ + coming;
  return then > high ? double(then - high) / double(kUnit) / kPlainUnits * plain : 0;
}

// What this miss has taken by now, and what mapping its pages will take.
double Mover::spending() const {
  const double elapsed = double(ground_.device.hostNanoseconds() - began_ns_);
  return elapsed + double(steps_.size()) * ground_.map_cost.mean();
}

std::size_t Mover::affordable() const {
  if (ground_.options.recycle == Recycle::kEager) return SIZE_MAX;
  const double balance = ground_.budget.balance() + credit() - spending();
  return balance <= 0 ? 0 : std::size_t(balance / ground_.map_cost.mean());
}

// Small pages strand little, large ones cost little: as small as what is reserved asks for, larger
// where the time is not there, and never so large that what is left could be stranded.
std::uint32_t Mover::pageUnits(bool pressed) const {
  if (request_.kind == SizeKind::kSmall) return 1;
  if (ground_.options.page_size != 0) return std::uint32_t(ground_.options.page_size / kUnit);
  if (pressed) return 1;
  const Limit& limit = ground_.limit;
  const std::uint32_t most =
      wholeUnits(std::min(limit.limit() / kPartOfLimit, limit.left() / kPartOfLeft));
  std::uint32_t units = std::min(most, wholeUnits(limit.reserved() / kPartOfReserved));
  if (ground_.options.recycle == Recycle::kEager) return units;
  const double balance = ground_.budget.balance() + credit() - spending();
  const double each = ground_.create_cost.mean() + ground_.map_cost.mean();
  while (units < most && double(gapUnits()) / units * each > balance) units *= 2;
  return units;
}

}  // namespace cistern::pages
