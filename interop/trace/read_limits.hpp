// What is taken from a file at most: the bounds of every format, and how much of one is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace cistern::trace {

/// The largest allocation, and the most bytes live at once: 2^60, beyond which no device can serve.
inline constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 60;
/// The largest stream number, and the most streams.
inline constexpr std::uint64_t kMaxStreams = 1'000'000;
/// The longest recording in microseconds: far from overflow, 36,000 years.
inline constexpr std::uint64_t kLongestUs = std::uint64_t{1} << 60;
/// The most comments that are kept. One of two bytes takes thirty times that in memory.
inline constexpr std::size_t kMaxNotes = 65'536;

// CUDA's handles of streams that no call has made. RMM's logs and PyTorch's snapshots have them.

/// cudaStreamLegacy: another name of the default stream.
inline constexpr std::uint64_t kLegacyStream = 1;
/// cudaStreamPerThread: another stream in each thread.
inline constexpr std::uint64_t kPerThreadStream = 2;

/// How much of a file is taken into memory.
struct ReadLimits {
  /// The most that gzip data may unpack to. None: 8 MiB, or a hundred times what it takes packed
  /// if that is more; recorded programs unpack to four or five times that.
  std::optional<std::uint64_t> unpacked_bytes;
};

/// How much of a recorded program is kept.
enum class Detail : std::uint8_t {
  kCalls,  ///< what a replay needs: allocations, frees and ends of uses, with sizes and streams
  kAll,    ///< all that its recorder knew
};

}  // namespace cistern::trace
