#include "allocator/engine/pages/donors.hpp"

#include <algorithm>

namespace cistern::pages {

bool Donors::Donor::operator<(const Donor& other) const {
  if (epoch != other.epoch && !without(Mechanism::kOldestFirst)) return epoch > other.epoch;
  if (grains != other.grains && !without(Mechanism::kSmallestBlock)) return grains > other.grains;
  if (range != other.range) return range > other.range;
  return unit < other.unit;
}

void Donors::clear() noexcept {
  for (OfOneSize& size : sizes_) {
    size.donors.clear();
    size.heap = false;
  }
  count_ = 0;
}

Donors::OfOneSize& Donors::findSize(std::uint32_t units) {
  if (sizes_.empty()) {
    sizes_.reserve(2 * std::size_t{kUsual});  // all of them come, or none
    for (std::uint32_t usual = 1; usual <= kUsual; ++usual) sizes_.push_back({usual, false, {}});
  }
  const auto it = std::lower_bound(
      sizes_.begin(), sizes_.end(), units,
      [](const OfOneSize& size, std::uint32_t wanted) { return size.units < wanted; });
  if (it != sizes_.end() && it->units == units) return *it;
  return *sizes_.insert(it, {units, false, {}});
}

void Donors::add(View& view) {
  const Block& block = *view.found.in;
  ofSize(view.units())
      .donors.push_back({block.epoch, block.grains, view.range->base, view.unit, &view});
  ++count_;
}

View* Donors::take(std::uint32_t fitting, std::uint32_t most) {
  OfOneSize* from = nullptr;
  for (OfOneSize& size : sizes_) {
    if (size.donors.empty()) continue;
    if (size.units > fitting && (from != nullptr || size.units > most)) break;
    from = &size;
    if (without(Mechanism::kLargestFitting)) break;
    if (size.units > fitting) break;
  }
  if (from == nullptr) return nullptr;
  auto& donors = from->donors;
  if (!from->heap) std::make_heap(donors.begin(), donors.end());
  from->heap = true;
  std::pop_heap(donors.begin(), donors.end());
  View* const view = donors.back().view;
  donors.pop_back();
  --count_;
  return view;
}

std::size_t Donors::hostBytes() const {
  std::size_t bytes = sizes_.capacity() * sizeof(OfOneSize);
  for (const OfOneSize& size : sizes_) bytes += size.donors.capacity() * sizeof(Donor);
  return bytes;
}

}  // namespace cistern::pages
