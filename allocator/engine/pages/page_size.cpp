// How large a new page is, and what a miss has cost. See mover.hpp, cost_loop.hpp.
#include <algorithm>
#include <bit>
#include <cmath>

#include "allocator/engine/pages/mover.hpp"
#include "allocator/engine/recording/recording.hpp"

namespace cistern::pages {
namespace {

/// A page is the mean by ratio of its request and 200 KiB, times the loop's scale. A block strands
/// some part of a page at its ends, and its calls are so many as it has pages: for all requests
/// together the least of both is had where pages grow as the root of the request. (This is in
/// units.)
constexpr double kUnderRoot = 0.1;
/// But 8 MiB at least, or all of the request, and 16 MiB at most.
constexpr double kLeastUnits = 4, kMostUnits = 8;
/// But a gap is not cut into pages smaller than this part of it, as long as they are no larger than
/// 64 MiB: what is in the middle of a large request is free when all of it is.
constexpr std::uint32_t kPartOfGap = 12, kMostUnitsOfGap = 32;
/// Either is at most this part of the limit, and of what is left below it: so many may be pinned
/// down by one small block each before it shows.
constexpr std::uint64_t kPartOfLimit = 2048, kPartOfLeft = 16;
/// What PyTorch's expandable segments grow by, 20 MiB: plain growth, which costs nobody too much.
constexpr double kPlainBytes = 20 * double(kMiB);
/// So many times the memory of its heap a capture may move, all together; in pages of 8 MiB.
constexpr std::uint64_t kMovedInCapture = 64, kPageOfCapture = 4 * kUnit;

}  // namespace

// A capture is made once, and what it grows by is held for as long as its graph is: so it takes
// what lies free before it grows, up to some times what the heap has, whatever that costs.
std::size_t Mover::movableInCapture() const {
  const std::uint64_t most = backed_before_ * kMovedInCapture, moved = request_.recording->moved;
  return moved >= most ? 0 : std::size_t((most - moved) / kPageOfCapture);
}

// A heap takes what it never had by growing, in whatever way it gets it.
void Mover::noteCost() {
  std::uint64_t more = 0;
  for (const Step& step : steps_) {
    if (step.source && !step.revived && request_.recording)
      request_.recording->moved += step.page->bytes();
    if (step.source != &heap_ && !step.revived) more += step.page->bytes();
  }
  if (request_.recording) return;
  const std::uint64_t now = ground_.device.hostNanoseconds(), had = window_.range->most_backed;
  const std::uint64_t most = std::max(had, backed_before_);
  const double grown = double(std::max(backed_before_ + more, most) - most);
  const double plain = grown / kPlainBytes * (ground_.create_cost.mean() + ground_.map_cost.mean());
  ground_.cost.note(double(now - began_ns_), without(Mechanism::kPlainCredit) ? 0 : plain, now);
}

std::uint32_t Mover::pageUnits(std::uint32_t gap) const {
  if (request_.kind == SizeKind::kSmall) return 1;
  if (ground_.options.page_size != 0) return std::uint32_t(ground_.options.page_size / kUnit);
  if (pressed_) return 1;
  const Limit& limit = ground_.limit;
  const bool eager = ground_.options.recycle == Recycle::kEager;
  const double loop = without(Mechanism::kCostLoop) ? 1 : ground_.cost.scale();
  const double scale = eager ? CostLoop::leastScale() : loop;
  const double request = std::max(double(request_.rounded()) / double(kUnit), 1.0);
  const double root = without(Mechanism::kRootOfRequest) ? 0 : std::sqrt(request * kUnderRoot);
  const double wanted = std::max(root, std::min(request, kLeastUnits)) * scale;
  const std::uint64_t bound =
      without(Mechanism::kPartOfLimit)
          ? UINT64_MAX / 2
          : std::min(limit.limit() / kPartOfLimit, limit.left() / kPartOfLeft);
  const double most = std::max(double(bound) / double(kUnit), 1.0);
  // Sizes of tensors tend to be powers of two: so are pages, the nearest by ratio.
  constexpr double kRootOfTwo = 1.41421356;
  const double of_request = std::min(wanted * kRootOfTwo, kMostUnits);
  const double of_gap =
      eager || without(Mechanism::kPartOfGap) ? 0 : std::min(gap / kPartOfGap, kMostUnitsOfGap);
  if (without(Mechanism::kPowersOfTwo))
    return std::uint32_t(std::clamp(std::max(std::min(wanted, kMostUnits), of_gap), 1.0, most));
  return std::bit_floor(std::uint32_t(std::clamp(std::max(of_request, of_gap), 1.0, most)));
}

}  // namespace cistern::pages
