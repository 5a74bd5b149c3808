#include "interop/command/replay/progress_bar.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "allocator/base/printable.hpp"

namespace cistern::command {
namespace {

constexpr std::size_t kBarWidth = 20;
constexpr std::size_t kTextWidth = 33;  // of the 80 columns of a terminal at least
constexpr auto kPatience = std::chrono::seconds(2);
constexpr double kLeastFraction = 0.01;  // a smaller one tells nothing of the time left
constexpr const char* kEraseLine = "\r\x1b[K";

std::string bar(double fraction) {
  const auto full = std::min(kBarWidth, std::size_t(fraction * double(kBarWidth)));
  std::string text;
  for (std::size_t i = 0; i < kBarWidth; ++i) text += i < full ? "█" : "░";
  return text;
}

}  // namespace

std::string timeLeft(double seconds) {
  const auto up = [](double number) { return std::uint64_t(std::ceil(number)); };
  if (seconds <= 90) return fmt::format("{} s", std::max<std::uint64_t>(up(seconds), 1));
  if (seconds <= 90 * 60) return fmt::format("{} min", up(seconds / 60));
  return fmt::format("{} h", up(seconds / 3600));
}

void Progress::show(double fraction, const std::string& what) {
  const std::chrono::duration<double> taken = Clock::now() - since_;
  if (out_ == nullptr || taken < kPatience) return;
  const std::string left = fraction < kLeastFraction
                               ? ""
                               : timeLeft(taken.count() * (1 - fraction) / fraction) + " left";
  *out_ << fmt::format("{}  {} {:3.0f} %  {:<12}{}", kEraseLine, bar(fraction), fraction * 100,
                       left, clipped(printable(what), kTextWidth))
        << std::flush;
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  *out_ << kEraseLine << std::flush;
  shown_ = false;
}

}  // namespace cistern::command
