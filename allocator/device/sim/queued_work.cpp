#include "allocator/device/sim/queued_work.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "allocator/base/check.hpp"

namespace cistern::sim {

MemoryView::Bytes MemoryView::at(Address address, std::uint64_t limit) const {
  for (const Span& span : std::span(spans_, count_)) {
    if (address < span.address || address - span.address >= span.bytes) continue;
    const std::uint64_t skip = address - span.address;
    return {span.backing->data() + span.offset + skip, std::min(limit, span.bytes - skip)};
  }
  constexpr bool kDeclaredByWork = false;
  CISTERN_CHECK(kDeclaredByWork);
  return {nullptr, 0};
}

void MemoryView::read(Address from, void* to, std::uint64_t bytes) const {
  for (std::uint64_t done = 0; done < bytes;) {
    const auto piece = at(from + done, bytes - done);
    std::memcpy(static_cast<std::byte*>(to) + done, piece.data, piece.size);
    done += piece.size;
  }
}

void MemoryView::write(Address to, const void* from, std::uint64_t bytes) const {
  for (std::uint64_t done = 0; done < bytes;) {
    const auto piece = at(to + done, bytes - done);
    std::memcpy(piece.data, static_cast<const std::byte*>(from) + done, piece.size);
    done += piece.size;
  }
}

}  // namespace cistern::sim
