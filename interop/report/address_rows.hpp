// All addresses that a recording ever has memory behind, as a few hundred rows of equal size: the
// rows of the coarse map. Addresses between, which never have memory, take no row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "interop/report/study.hpp"

namespace cistern::report {

/// Addresses that lie side by side, and the rows that show them.
struct AddressPart {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::size_t first_row = 0;
  std::size_t rows = 0;
};

class AddressRows {
 public:
  /// At most `most` rows. Pre: the recording has addresses, and most >= 2.
  AddressRows(const Study& study, std::size_t most);

  const std::vector<AddressPart>& parts() const { return parts_; }
  std::size_t count() const { return count_; }
  std::uint64_t rowBytes() const { return row_bytes_; }

  /// Calls each(row, bytes) for every row that a range of addresses touches, with the bytes there.
  template <class Each>
  void forRows(std::uint64_t address, std::uint64_t bytes, Each each) const;

 private:
  const AddressPart* partWith(std::uint64_t address) const;

  std::vector<AddressPart> parts_;  ///< by address
  std::size_t count_ = 0;
  std::uint64_t row_bytes_ = 1;
};

template <class Each>
void AddressRows::forRows(std::uint64_t address, std::uint64_t bytes, Each each) const {
  const AddressPart* const part = partWith(address);
  if (part == nullptr) return;
  std::uint64_t at = address - part->address;
  for (std::uint64_t left = bytes; left > 0;) {
    const std::uint64_t row = at / row_bytes_;
    if (row >= part->rows) return;
    const std::uint64_t here =
        left < (row + 1) * row_bytes_ - at ? left : (row + 1) * row_bytes_ - at;
    each(part->first_row + row, here);
    at += here;
    left -= here;
  }
}

}  // namespace cistern::report
