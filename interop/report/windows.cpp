#include "interop/report/windows.hpp"

#include <algorithm>
#include <utility>

namespace cistern::report {
namespace {

struct SizedWindow {
  Window window;     ///< packed, unless it has grown since
  double bytes = 0;  ///< about what it takes, packed

  double bytesAnEvent() const { return bytes / double(window.count); }
};

/// The windows that are chosen so far.
class WindowChoice {
 public:
  WindowChoice(const Study& study, std::uint64_t most_bytes)
      : study_(study), most_bytes_(double(most_bytes)) {}

  /// Whether the moment has a window now.
  bool add(const Moment& moment) {
    const std::uint32_t first = moment.done - std::min(moment.done, kWindowReach);
    const std::uint32_t reach = std::min(study_.events() - moment.done, kWindowReach);
    const SizedWindow added = joined({{first, moment.done + reach - first}, 0});
    if (others(added) + added.bytes > most_bytes_) return false;
    std::erase_if(chosen_, [&](const SizedWindow& w) { return touch(w, added); });
    chosen_.push_back(added);
    return true;
  }

  std::vector<Window> take() {
    std::sort(chosen_.begin(), chosen_.end(), [](const SizedWindow& a, const SizedWindow& b) {
      return a.window.first < b.window.first;
    });
    std::vector<Window> windows;
    for (SizedWindow& chosen : chosen_) {
      if (chosen.window.packed.bytes == 0) pack(chosen.window);
      windows.push_back(std::move(chosen.window));
    }
    return windows;
  }

 private:
  static bool touch(const SizedWindow& a, const SizedWindow& b) {
    return a.window.first <= b.window.end() && b.window.first <= a.window.end();
  }

  void pack(Window& window) const { window.packed = packed(windowJson(study_, window).dump()); }

  /// The window with those that it touches, and what it takes. To pack is dear, so the events that
  /// it adds to others count as much as theirs.
  SizedWindow joined(SizedWindow window) const {
    double bytes = 0, bytes_an_event = 0;
    std::uint32_t counted = 0;
    for (const SizedWindow& other : chosen_) {
      if (!touch(other, window)) continue;
      bytes += other.bytes;
      bytes_an_event = std::max(bytes_an_event, other.bytesAnEvent());
      counted += other.window.count;
      const std::uint32_t first = std::min(window.window.first, other.window.first);
      const std::uint32_t end = std::max(window.window.end(), other.window.end());
      const bool same = first == other.window.first && end == other.window.end();
      window.window = {first, end - first, same ? other.window.packed : Piece()};
    }
    if (counted == 0) {
      pack(window.window);
      bytes = double(window.window.packed.deflated.size());
    }
    window.bytes = bytes + bytes_an_event * double(window.window.count - counted);
    return window;
  }

  double others(const SizedWindow& but) const {
    double bytes = 0;
    for (const SizedWindow& chosen : chosen_)
      if (!touch(chosen, but)) bytes += chosen.bytes;
    return bytes;
  }

  const Study& study_;
  const double most_bytes_;
  std::vector<SizedWindow> chosen_;  ///< none touches another
};

std::vector<std::size_t> numbersOf(const std::vector<Moment>& moments, MomentKind kind) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < moments.size(); ++i)
    if (moments[i].kind == kind) numbers.push_back(i);
  return numbers;
}

/// The moments by how much they need a window.
std::vector<std::size_t> byNeed(const std::vector<Moment>& moments) {
  const std::vector<std::size_t> failures = numbersOf(moments, MomentKind::kFailure);
  std::vector<std::size_t> needs;
  if (!failures.empty()) needs.push_back(failures.front());
  for (const MomentKind kind : {MomentKind::kPeak, MomentKind::kNamed}) {
    const std::vector<std::size_t> more = numbersOf(moments, kind);
    needs.insert(needs.end(), more.begin(), more.end());
  }
  for (std::size_t i = 1; i < failures.size(); ++i)  // from both ends
    needs.push_back(failures[i % 2 == 0 ? i / 2 : failures.size() - 1 - i / 2]);
  const std::vector<std::size_t> ends = numbersOf(moments, MomentKind::kEnd);
  needs.insert(needs.end(), ends.begin(), ends.end());
  return needs;
}

}  // namespace

std::vector<Window> windowsAround(const Study& study, std::vector<Moment>& moments,
                                  std::uint64_t most_bytes) {
  WindowChoice choice(study, most_bytes);
  bool full = !study.recorded().has_addresses || study.events() == 0;
  for (const std::size_t number : byNeed(moments)) {
    Moment& moment = moments[number];
    if (!full && moment.has_window) full = !choice.add(moment);
    if (full) moment.has_window = false;
  }
  return choice.take();
}

std::size_t windowOf(const std::vector<Window>& windows, const Moment& moment) {
  std::size_t at = 0;
  while (at + 1 < windows.size() && windows[at + 1].first <= moment.done) ++at;
  return at;
}

}  // namespace cistern::report
