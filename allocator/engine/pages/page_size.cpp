// How large the page is that comes into a gap.
#include <algorithm>
#include <bit>
#include <cmath>

#include "allocator/engine/pages/mover.hpp"

namespace cistern::pages {
namespace {

/// A page is the geometric mean of its request and 200 KiB, times the controller's scale. A block
/// strands some part of a page at its ends, and takes as many calls as it has pages. For all
/// requests together both are least if pages grow as the root of the request. (This is in units.)
/// With `recycle:eager`, which ignores cost, they are a quarter as large.
constexpr double kUnderRoot = 0.1, kEager = 0.25;
/// Before the scale it is at least 8 MiB, or the whole request if smaller. After the scale it is at
/// most 16 MiB.
constexpr double kLeastUnits = 4, kMostUnits = 8;
/// But a gap is not cut into more pages than this, divided by the square of the scale, as long as
/// they are no larger than 64 MiB. The middle of a large request is free when all of it is. If much
/// is overdrawn, a gap up to that size gets one page.
constexpr double kPagesOfGap = 12, kMostUnitsOfGap = 32;
/// No page is larger than 1/2048 of the limit, or 1/16 of what is left below it, but for one unit.
/// Small blocks can pin down 2048 pages, or 16, one block each, before that shows.
constexpr std::uint64_t kPartOfLimit = 2048, kPartOfLeft = 16;

std::uint32_t pageUnits(const State& state, const Request& request, std::uint32_t gap,
                        bool pressed) {
  if (request.kind == SizeKind::kSmall) return 1;
  if (state.core.options.page_size != 0) return std::uint32_t(state.core.options.page_size / kUnit);
  if (pressed) return 1;
  const MemoryKind kind = memoryFor(request);
  const std::uint64_t all =
      kind == MemoryKind::kPages ? state.core.limit.limit() : state.core.device_total;
  const bool eager = state.core.options.recycle == Recycle::kEager;
  const double controlled = without(Mechanism::kCostController) ? 1 : state.cost.scale();
  const double scale = eager ? kEager : controlled;
  const double size = std::max(double(request.rounded()) / double(kUnit), 1.0);
  const double root = without(Mechanism::kRootOfRequest) ? 0 : std::sqrt(size * kUnderRoot);
  const double wanted = std::max(root, std::min(size, kLeastUnits)) * scale;
  const std::uint64_t bound =
      without(Mechanism::kPartOfLimit)
          ? UINT64_MAX / 2
          : std::min(all / kPartOfLimit, state.core.leftFor(kind) / kPartOfLeft);
  const double most = std::max(double(bound) / double(kUnit), 1.0);
  // Sizes of tensors tend to be powers of two: so are pages, the nearest by ratio.
  constexpr double kRootOfTwo = 1.41421356;
  const double of_request = std::min(wanted * kRootOfTwo, kMostUnits);
  const double pages = std::max(kPagesOfGap / (scale * scale), 1.0);
  const double of_gap =
      eager || without(Mechanism::kPartOfGap) ? 0 : std::min(gap / pages, kMostUnitsOfGap);
  if (pages == 1 || without(Mechanism::kPowersOfTwo))
    return std::uint32_t(std::clamp(std::max(std::min(wanted, kMostUnits), of_gap), 1.0, most));
  return std::bit_floor(std::uint32_t(std::clamp(std::max(of_request, of_gap), 1.0, most)));
}

}  // namespace

bool movesOwn(const State& state, const Request& request) {
  constexpr std::uint64_t kLeast = 8 * kMiB;
  return request.kind == SizeKind::kSmall || request.rounded() >= kLeast || request.capture ||
         state.core.options.recycle == Recycle::kEager || without(Mechanism::kOwnForLarge);
}

// A gap that takes several pages gets them of one size, so that they fit the next request of its
// kind. A gap that takes less gets a page to itself. A page that reaches into the next block is not
// free together with it. But a request that nothing is moved for asks for little at a time, and so
// does a capture. There the rest of a page of up to 8 MiB is for requests to come.
std::uint32_t newPageUnits(const State& state, const Request& request, const Gap& gap,
                           bool pressed) {
  const std::uint32_t lacking = gap.lacking(), room = gap.room();
  const std::uint32_t page = pageUnits(state, request, lacking, pressed);
  if (pressed) return std::min(page, lacking);
  if (state.core.options.page_size != 0) return std::min(page, room);
  if (lacking <= page) {
    constexpr std::uint32_t kShared = 4;
    const bool shares = request.capture != nullptr || !movesOwn(state, request);
    if (!shares || without(Mechanism::kReachBeyond)) return lacking;
    return std::max(lacking, std::min({page, room, kShared}));
  }
  if (without(Mechanism::kEvenPages)) return page;
  const std::uint32_t count = (lacking + page - 1) / page;
  return (lacking + count - 1) / count;
}

}  // namespace cistern::pages
