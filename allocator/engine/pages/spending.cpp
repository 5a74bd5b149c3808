// What serving a miss may cost, and so how large its new pages are. See mover.hpp.
#include <algorithm>
#include <bit>
#include <cmath>

#include "allocator/engine/pages/mover.hpp"
#include "allocator/engine/recording/recording.hpp"

namespace cistern::pages {
namespace {

/// The usual page, and the largest that is made by choice: 16 MiB.
constexpr std::uint32_t kUsualUnits = 8;
/// So many times the memory of its heap a capture may move, all together.
constexpr std::uint64_t kMovedInCapture = 64;
/// The usual page of a capture, whose blocks are many sizes in little time: 8 MiB.
constexpr std::uint32_t kUsualOfCapture = 4;
/// A page is at least this part of what is reserved: what can be stranded is in proportion.
constexpr std::uint64_t kPartOfReserved = 4096;
/// It is at most this part of the limit, and of what is left below it: so many may be pinned down
/// by one small block each before it shows.
constexpr std::uint64_t kPartOfLimit = 2048, kPartOfLeft = 16;
/// A heap may move, once, a quarter of its memory as if growing by it: growing would have gone on
/// for as long as that, at most.
constexpr std::uint64_t kMovedOnce = 4;
/// How far the balance has to last: until what is reserved has doubled, and at least for so
/// many bytes.
constexpr std::uint64_t kLeastAhead = 2500 * kMiB;
/// Sizes are powers of two; one that is hardly above such counts as it.
constexpr double kBarely = 0.9;

std::uint32_t wholeUnits(std::uint64_t bytes) {
  const std::uint64_t units = std::clamp<std::uint64_t>(bytes / kUnit, 1, kUsualUnits);
  return std::uint32_t(std::bit_floor(units));
}

}  // namespace

// Steps are only added until they are mapped: those that were looked at need not be again.
const Mover::Coming& Mover::coming() const {
  for (; coming_.steps < steps_.size(); ++coming_.steps) {
    const Step& step = steps_[coming_.steps];
    if (step.revived) continue;
    if (step.source == &heap_) {
      coming_.moved += step.page->bytes();
      continue;
    }
    coming_.more += step.page->bytes();
    if (step.source == nullptr) continue;
    coming_.others += step.page->bytes();
    ++coming_.others_count;
  }
  return coming_;
}

// How much of what comes lies beyond the most that this heap ever had.
std::uint64_t Mover::beyondMost() const {
  const std::uint64_t more = gapUnits() * kUnit + coming().more;
  const std::uint64_t most = std::max(window_.range->most_backed, backed_before_);
  return std::max(backed_before_ + more, most) - most;
}

// What would have been spent without recycling too: a heap takes what it never had by growing,
// where taking it from another is no dearer; and it would have grown, once, by part of what it
// moves.
double Mover::credit() const {
  const auto& [steps, more, moved, others, others_count] = coming();
  const std::uint64_t beyond = beyondMost(), taken = std::min(beyond, others);
  const std::uint64_t once = window_.range->most_backed / kMovedOnce;
  const std::uint64_t before = std::min(window_.range->moved, once);
  const double grown = double(beyond - taken + std::min(moved, once - before)) / double(kUnit);
  const double plain = ground_.create_cost.mean() + ground_.map_cost.mean();
  const double of_others = others == 0 ? 0 : double(taken) / double(others) * double(others_count);
  return grown / kUsualUnits * plain + of_others * ground_.map_cost.mean();
}

// What this miss has taken by now, and what mapping its pages will take.
double Mover::spending() const {
  const double elapsed = double(ground_.device.hostNanoseconds() - began_ns_);
  return elapsed + double(steps_.size() - window_.revivals) * ground_.map_cost.mean();
}

// A capture is outside of the budget. It is made once, and what it grows by is held for as long as
// its graph is: so it takes what lies free before it grows, up to some times what the heap has.
std::size_t Mover::affordableInCapture() const {
  const std::uint64_t most = backed_before_ * kMovedInCapture, moved = request_.recording->moved;
  return moved >= most ? 0 : std::size_t((most - moved) / (kUsualOfCapture * kUnit));
}

void Mover::pay() {
  if (request_.recording) {
    for (const Step& step : steps_) {
      if (step.source && !step.revived) request_.recording->moved += step.page->bytes();
    }
    return;
  }
  const double took = double(ground_.device.hostNanoseconds() - began_ns_);
  coming_ = {};  // they were sorted
  ground_.budget.spend(std::max(0.0, took - credit()));
}

std::size_t Mover::affordable() const {
  if (ground_.options.recycle == Recycle::kEager) return SIZE_MAX;
  if (request_.recording) return affordableInCapture();
  const double balance = ground_.budget.balance() + credit() - spending();
  return balance <= 0 ? 0 : std::size_t(balance / ground_.map_cost.mean());
}

std::size_t Mover::affordableFromOthers() const {
  return beyondMost() > 0 ? SIZE_MAX : affordable();
}

// Small pages strand little, large ones cost little. So: the usual size where there is no balance
// to spend, smaller as far as the balance lasts, and never so large that what is left is at stake.
std::uint32_t Mover::pageUnits() const {
  if (request_.kind == SizeKind::kSmall) return 1;
  if (ground_.options.page_size != 0) return std::uint32_t(ground_.options.page_size / kUnit);
  if (pressed_) return 1;
  const Limit& limit = ground_.limit;
  const std::uint32_t most =
      wholeUnits(std::min(limit.limit() / kPartOfLimit, limit.left() / kPartOfLeft));
  const std::uint32_t least = std::min(most, wholeUnits(limit.reserved() / kPartOfReserved));
  if (ground_.options.recycle == Recycle::kEager) return least;
  const double each = ground_.create_cost.mean() + ground_.map_cost.mean();
  const double ahead = double(std::max(limit.reserved(), kLeastAhead)) / double(kUnit) * each;
  const double balance = std::max(0.0, ground_.budget.balance() + credit() - spending());
  const double pages_a_unit = 1.0 / kUsualUnits + balance / ahead;
  const auto units = std::bit_ceil(std::uint32_t(std::ceil(kBarely / pages_a_unit)));
  const std::uint32_t usual = request_.recording ? kUsualOfCapture : kUsualUnits;
  return std::clamp(std::min(units, usual), least, most);
}

}  // namespace cistern::pages
