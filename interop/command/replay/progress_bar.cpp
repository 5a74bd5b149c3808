#include "interop/command/replay/progress_bar.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "allocator/base/printable.hpp"

namespace cistern::command {
namespace {

constexpr std::size_t kBarWidth = 30;
constexpr std::size_t kTextWidth = 38;  // of the 80 columns of a terminal at least
constexpr auto kBackoff = std::chrono::milliseconds(300);
constexpr const char* kEraseLine = "\r\x1b[K";

std::string bar(double fraction) {
  const auto full = std::min(kBarWidth, std::size_t(fraction * double(kBarWidth)));
  std::string text;
  for (std::size_t i = 0; i < kBarWidth; ++i) text += i < full ? "█" : "░";
  return text;
}

}  // namespace

void Progress::show(double fraction, const std::string& what) {
  if (!console_.err_is_terminal || Clock::now() - since_ < kBackoff) return;
  console_.err << fmt::format("{}  {} {:3.0f} %  {}", kEraseLine, bar(fraction), fraction * 100,
                              clipped(printable(what), kTextWidth))
               << std::flush;
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  console_.err << kEraseLine << std::flush;
  shown_ = false;
}

}  // namespace cistern::command
