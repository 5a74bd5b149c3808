// How request sizes are rounded up between powers of two: the option roundup_power2_divisions.
// Between 2^k and 2^(k+1) there are `divisions` equal steps, and a request goes up to the next one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cistern {

/// The number of divisions for each size, as PyTorch lays it out: 16 intervals, the k-th from 2^k
/// MiB up to 2^(k+1) MiB. The first also covers everything below 1 MiB, the last all from 32 GiB.
class RoundupDivisions {
 public:
  static constexpr std::size_t kIntervals = 16;
  static constexpr std::uint64_t kMaxDivisions = 64;

  /// Off for every size.
  RoundupDivisions() = default;

  /// Steps between the powers of two around `bytes`; 0 or 1 when only the 512-byte granule applies.
  std::uint64_t divisionsFor(std::uint64_t bytes) const noexcept;

  /// Reads "off", a number ("4", for all sizes), or a list ("[256:1,512:2,>:4]"): ascending keys
  /// in MiB, each a power of two. A key's entry covers its own interval; the first one's all below
  /// too; '>' all above the last key; an interval not named is off. Nothing when malformed.
  static std::optional<RoundupDivisions> read(std::string_view text);
  /// The shortest text that read() takes back to the same value.
  std::string print() const;

  friend bool operator==(const RoundupDivisions&, const RoundupDivisions&) = default;

 private:
  static std::optional<RoundupDivisions> readList(std::string_view entries);

  std::array<std::uint8_t, kIntervals> divisions_{};  // each 0 or a power of two <= kMaxDivisions
};

}  // namespace cistern
