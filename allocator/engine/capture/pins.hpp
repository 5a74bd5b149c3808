// Memory that must stay where it is because a graph that may be replayed knows its addresses.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace cistern {

struct HeapSegment;
namespace pages {
struct Mapping;
}

/// What names a holder of pins: a capture, a part of one, or an export. Unique among those that
/// overlap; never 0, nor Request::kLent.
inline std::uint32_t nextHolder() {
  static std::atomic<std::uint32_t> next{1};
  const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number != 0 && number != UINT32_MAX ? number : nextHolder();
}

/// What one graph holds in place: each segment, or mapping of a page, once.
struct Pins {
  std::vector<pages::Mapping*> mappings;
  std::vector<HeapSegment*> segments;
  std::vector<std::shared_ptr<void>> graphs;  ///< that became part of it: what they hold
};

}  // namespace cistern
