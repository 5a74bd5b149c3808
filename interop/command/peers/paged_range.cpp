#include "interop/command/peers/paged_range.hpp"

#include <utility>

#include "allocator/base/bytes.hpp"
#include "allocator/base/check.hpp"

namespace cistern::command {

PagedRange::PagedRange(Device& device, std::uint64_t bytes, std::uint64_t page_bytes)
    : device_(device),
      page_bytes_(page_bytes),
      pages_((bytes + page_bytes - 1) / page_bytes),
      begin_(device.reserve(this->bytes()).orThrow()) {}

PagedRange::~PagedRange() {
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    if (pages_[i] != Page{}) drop(i);
  }
  (void)device_.freeReservation(begin_, bytes());
}

bool PagedRange::map(Address address, std::uint64_t bytes) {
  const auto [first, end] = partOf(address, bytes);
  for (std::size_t i = first; i < end; ++i) {
    Result<Page> page = device_.createPage(page_bytes_);
    if (!page) {
      while (i > first) drop(--i);
      if (page.error().kind == ErrorKind::kOutOfMemory) return false;
      throw DeviceFailure(page.error());
    }
    pages_[i] = page.value();
    device_.map(addressOf(i), page_bytes_, pages_[i]).orThrow();
  }
  device_.setAccess(address, bytes).orThrow();
  return true;
}

void PagedRange::unmap(Address address, std::uint64_t bytes) {
  const auto [first, end] = partOf(address, bytes);
  for (std::size_t i = first; i < end; ++i) drop(i);
}

PagedRange::Part PagedRange::partOf(Address address, std::uint64_t bytes) const {
  CISTERN_CHECK(address >= begin_ && (address - begin_) % page_bytes_ == 0);
  CISTERN_CHECK(bytes % page_bytes_ == 0 && bytes <= this->bytes() - (address - begin_));
  const std::size_t first = (address - begin_) / page_bytes_;
  return {first, first + bytes / page_bytes_};
}

// A device that fails here is lost, and a destructor calls this too.
void PagedRange::drop(std::size_t index) {
  (void)device_.unmap(addressOf(index), page_bytes_);
  (void)device_.releasePage(std::exchange(pages_[index], Page{}));
}

}  // namespace cistern::command
