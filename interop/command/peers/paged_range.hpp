// A range of device addresses, behind which pages of one size are mapped where they are needed. The
// peers that are modelled here take their memory through it. So their calls to the device are
// counted and priced like those of any other policy.
#pragma once

#include <cstdint>
#include <vector>

#include "cistern/device.hpp"

namespace cistern::command {

/// Invariant: of the addresses [begin() + i * page, begin() + (i + 1) * page), pages_[i] is mapped
/// there, or nothing is where it names no page.
class PagedRange {
 public:
  /// Pre: page_bytes is a multiple of the device's granularity. Throws DeviceFailure.
  PagedRange(Device& device, std::uint64_t bytes, std::uint64_t page_bytes);
  /// Pre: no queued work uses the mapped memory.
  ~PagedRange();
  PagedRange(const PagedRange&) = delete;
  PagedRange& operator=(const PagedRange&) = delete;

  Address begin() const { return begin_; }
  std::uint64_t bytes() const { return pages_.size() * page_bytes_; }

  /// Makes pages and maps them there. False, with nothing changed, when the device has no room for
  /// them. Pre: both are multiples of the page size, and nothing is mapped there.
  bool map(Address address, std::uint64_t bytes);
  /// Pre: both are multiples of the page size; pages are mapped there, and no queued work uses
  /// them.
  void unmap(Address address, std::uint64_t bytes);

 private:
  struct Part {
    std::size_t first, end;
  };
  Part partOf(Address address, std::uint64_t bytes) const;
  Address addressOf(std::size_t index) const { return begin_ + index * page_bytes_; }
  void drop(std::size_t index);

  Device& device_;
  const std::uint64_t page_bytes_;
  std::vector<Page> pages_;
  Address begin_;
};

}  // namespace cistern::command
