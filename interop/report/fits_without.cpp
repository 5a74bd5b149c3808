#include "interop/report/fits_without.hpp"

#include "allocator/base/bytes.hpp"

namespace cistern::report {
namespace {

constexpr std::uint64_t kUnit = std::uint64_t(2) << 20;  // pages are made of these

Living livingWithout(const std::vector<Life>& lives, const Living& living, const Holder& holder) {
  Living rest = living;
  std::erase_if(rest.held, [&](std::uint32_t number) {
    return lives[number].stack == holder.stack && lives[number].label == holder.label;
  });
  return rest;
}

/// The bytes of a gap that could go back to the device: whole segments, or whole units of pages. A
/// gap lies in one segment, or in pages side by side.
std::uint64_t returnable(const Gap& gap, const recording::ReservedRanges& reserved) {
  const recording::Reserved* range = reserved.at(gap.address);
  const std::uint64_t end = gap.address + gap.bytes;
  if (range == nullptr) return 0;
  if (!range->expandable) return gap.bytes == range->end - range->begin ? gap.bytes : 0;
  const std::uint64_t first = roundUp(gap.address, kUnit);
  const std::uint64_t last = roundDown(end, kUnit);
  return last > first ? last - first : 0;
}

}  // namespace

std::optional<bool> fitsWithout(const Request& request, const recording::ReservedRanges& reserved,
                                const std::vector<Life>& lives, const Living& living,
                                const Holder& holder, std::optional<std::uint64_t> available) {
  const std::vector<Gap> gaps = gapsIn(reserved, lives, livingWithout(lives, living, holder));
  std::uint64_t returned = 0;
  for (const Gap& gap : gaps) {
    const bool own = gap.pool == request.pool && gap.stream == request.stream;
    if (own && gap.bytes >= request.bytes) return true;
    returned += returnable(gap, reserved);
  }
  if (!available) return std::nullopt;
  return *available + returned >= request.bytes;
}

}  // namespace cistern::report
