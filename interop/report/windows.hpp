// Windows: the parts of a recording whose memory the page shows exactly, block by block. Each
// moment that asks for one has the events around it; windows that overlap become one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>

#include "interop/report/gzip.hpp"
#include "interop/report/moments.hpp"
#include "interop/report/study.hpp"

namespace cistern::report {

/// Events that a window has before and after its moment.
inline constexpr std::uint32_t kWindowReach = 50'000;

struct Window {
  std::uint32_t first = 0;  ///< event number
  std::uint32_t count = 0;  ///< > 0
  Piece packed{};           ///< its JSON

  std::uint32_t end() const { return first + count; }
};

/// Windows around the moments that ask for one, as far as `most_bytes` reach, which is about what
/// they may take in the page before base64. The first failure has its window first, then the peak,
/// then each moment that the maker names, then the last failure, the second, the last but one, and
/// so on. A moment that has none then asks for none any more.
///
/// By their first event. None overlaps or touches another. None if the recording has no addresses.
std::vector<Window> windowsAround(const Study& study, std::vector<Moment>& moments,
                                  std::uint64_t most_bytes);

/// The number of the window that shows the moment. Pre: one does.
std::size_t windowOf(const std::vector<Window>& windows, const Moment& moment);

nlohmann::json windowJson(const Study& study, const Window& window);

}  // namespace cistern::report
