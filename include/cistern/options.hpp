// The options of an allocator. The fields here state each default once. Everything else about an
// option (names, range, documentation) is in option_table.cpp. The parser, its messages and
// docs/options.md are made from that table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "cistern/error.hpp"

namespace cistern {

/// The memory behind a segment's addresses.
enum class Backing : std::uint8_t {
  kPages,  ///< reserved ranges of addresses, over pages that move; kSegments where there are none
  kSegments,  ///< one device malloc for each segment
};

/// When a wholly free page is moved to where it is needed.
enum class Recycle : std::uint8_t {
  kBudget,  ///< instead of growing as long as the time for it is there; always under pressure
  kEager,   ///< always instead of growing
  kOff,     ///< never
};

/// When a stream may take free memory of another.
enum class CrossStreamReuse : std::uint8_t {
  kComplete,  ///< once the other's work with it is complete; if memory is short, after waiting for
              ///< it
  kWait,      ///< instead of growing: the stream is made to wait, on the device
  kOff,       ///< never
};

inline constexpr std::uint64_t kUnlimited = (std::numeric_limits<std::uint64_t>::max)();

/// How request sizes are rounded up between powers of two: the option roundup_power2_divisions.
/// Between 2^k and 2^(k+1) there are `divisions` equal steps, and a request goes up to the next
/// one.
///
/// Each interval of sizes has a number of divisions, as PyTorch lays it out. There are 16
/// intervals, the k-th from 2^k MiB up to 2^(k+1) MiB. The first covers all below 1 MiB too, the
/// last all from 32 GiB.
class CISTERN_API RoundupDivisions {
 public:
  static constexpr std::size_t kIntervals = 16;
  static constexpr std::uint64_t kMaxDivisions = 64;

  /// Off for every size.
  RoundupDivisions() = default;

  /// Steps between the powers of two around `bytes`; 0 or 1 when only the 512-byte granule applies.
  std::uint64_t divisionsFor(std::uint64_t bytes) const noexcept;

  /// Reads "off", a number ("4", for all sizes), or a list ("[256:1,512:2,>:4]"): ascending keys in
  /// MiB, each a power of two. A key's entry covers its own interval. The first entry covers all
  /// below too, and '>' all above the last key. An interval that is not named is off. Nothing when
  /// malformed.
  static std::optional<RoundupDivisions> read(std::string_view text);
  /// The shortest text that read() takes back to the same value.
  std::string print() const;

  friend bool operator==(const RoundupDivisions& a, const RoundupDivisions& b) {
    return a.divisions_ == b.divisions_;
  }
  friend bool operator!=(const RoundupDivisions& a, const RoundupDivisions& b) { return !(a == b); }

 private:
  static std::optional<RoundupDivisions> readList(std::string_view entries);

  std::array<std::uint8_t, kIntervals> divisions_{};  // each 0 or a power of two <= kMaxDivisions
};

/// The choices. A default-constructed one holds the choices of an allocator without options.
struct CISTERN_API Options {
  Backing backing = Backing::kPages;
  std::uint64_t page_size = 0;  ///< 0: chosen by the allocator
  Recycle recycle = Recycle::kBudget;
  double recycle_budget = 0.005;  ///< 0: none
  bool background_thread = true;
  std::uint64_t max_split_size = kUnlimited;
  std::uint64_t max_non_split_rounding = 20 * kMiB;
  RoundupDivisions roundup_power2_divisions{};
  double garbage_collection_threshold = 0;  ///< 0: off
  bool expandable_segments = false;
  double memory_fraction = 1;
  std::uint64_t limit = 0;     ///< 0: none
  std::uint64_t overflow = 0;  ///< 0: none
  std::uint64_t keep_ms = 0;   ///< 0: for ever
  std::uint64_t large_segment_size = 20 * kMiB;
  bool release_lock_on_cudamalloc = true;
  CrossStreamReuse cross_stream_reuse = CrossStreamReuse::kComplete;
  bool reusesAcrossStreams() const { return cross_stream_reuse != CrossStreamReuse::kOff; }
  bool prefer_old_segments = true;
  std::uint64_t thread_cache = 8 * kMiB;
  std::uint64_t history = 0;     ///< 0: none
  std::string history_folder{};  ///< empty: none
  bool history_stacks = false;
  bool nvtx_labels = false;
  std::string oom_dump{};  ///< empty: none

  /// `base` with every "key:value" of the comma-separated `conf` applied, in order. Options that
  /// `conf` does not name stay as they were. Throws OptionError naming the key, the given value and
  /// what is allowed.
  static Options parse(std::string_view conf, const Options& base);
  static Options parse(std::string_view conf);

  /// The defaults with the environment variable CISTERN_CONF applied. Throws OptionError.
  static Options fromEnvironment();

  /// The conf text that parse() takes back to these options: all that differ from their default.
  std::string conf() const;

  /// Whether both make the same choices, that is, have the same conf().
  CISTERN_API friend bool operator==(const Options& a, const Options& b);
  friend bool operator!=(const Options& a, const Options& b) { return !(a == b); }
};

}  // namespace cistern
