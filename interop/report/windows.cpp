#include "interop/report/windows.hpp"

#include <algorithm>

namespace cistern::report {

std::vector<Window> windowsAround(const Study& study, const std::vector<Moment>& moments) {
  std::vector<Window> windows;
  if (!study.recorded().has_addresses) return windows;
  for (const Moment& moment : moments) {  // which are in order
    if (!moment.has_window || study.events() == 0) continue;
    const std::uint32_t first = moment.done - std::min(moment.done, kWindowReach);
    const std::uint32_t end = moment.done + std::min(study.events() - moment.done, kWindowReach);
    if (!windows.empty() && first <= windows.back().first + windows.back().count) {
      windows.back().count = end - windows.back().first;
    } else {
      windows.push_back({first, end - first});
    }
  }
  return windows;
}

std::size_t windowOf(const std::vector<Window>& windows, const Moment& moment) {
  std::size_t at = 0;
  while (at + 1 < windows.size() && windows[at + 1].first <= moment.done) ++at;
  return at;
}

}  // namespace cistern::report
