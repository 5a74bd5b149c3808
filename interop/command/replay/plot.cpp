#include "interop/command/replay/plot.hpp"

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/base/printable.hpp"
#include "interop/command/plot/style.hpp"
#include "interop/command/replay/grouped.hpp"
#include "interop/command/replay/policy.hpp"
#include "interop/command/replay/timeline.hpp"

namespace cistern::command {
namespace {

constexpr std::size_t kTitleWidth = 48;

Curve askedOverTime(const Script& script, const Timeline& timeline, std::uint64_t rounds) {
  Curve curve(timeline.span(), kPictureColumns);
  std::uint64_t now = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::vector<std::uint64_t> held(script.slots);
    std::uint64_t asked = 0;
    for (const Step& step : script.steps) {
      now += timeline.lengthOf(step);
      if (step.kind == StepKind::kAllocate) asked += held[step.slot] = step.bytes;
      if (isFree(step.kind)) asked -= held[step.slot];
      curve.add(now, asked);
    }
    if (round + 1 < rounds) curve.add(now, 0);
  }
  return curve;
}

/// Each policy has a colour of its own, so that it is the same in every picture.
std::size_t colourOf(const PolicyKind& kind) {
  return std::size_t(&kind - policyKinds().data()) % kColours;
}

std::string inUse(double efficiency) { return fmt::format("{:.1f} % in use", 100 * efficiency); }

std::string figuresOf(const Measurement& row) {
  const std::string peak = "peak " + formatBytes(row.peak_reserved);
  if (!row.ok()) return peak + ", not served";
  return row.efficiency() ? fmt::format("{}, {}", peak, inUse(*row.efficiency())) : peak;
}

std::string descriptionOf(const Picture& picture) {
  std::string text =
      fmt::format("{}. Asked for by the program: {}.", picture.title, picture.asked.figures);
  if (picture.cap) text += fmt::format(" Cap: {}.", formatBytes(*picture.cap));
  for (const Series& series : picture.reserved) {
    text += fmt::format(" Reserved by {}: {}.", series.title, series.figures);
  }
  return text;
}

}  // namespace

void Plot::begin(const Script& script) {
  const Timeline timeline(script, rounds_);
  picture_.title = clipped(printable(script.name), kTitleWidth) + ": device memory over time";
  picture_.time = rounds_ == 1 ? std::string("into the program")
                               : fmt::format("into {} of the program", counted(rounds_, "round"));
  picture_.span = timeline.span();
  picture_.in_events = timeline.inEvents();
  picture_.asked = {"asked", "asked for", "peak " + formatBytes(script.peak_requested), 0,
                    askedOverTime(script, timeline, rounds_)};
}

void Plot::row(const Measurement& row) {
  const PolicyKind& kind = policyKind(row.policy);
  if (!row.reserved_over_time) {
    not_replayed_ += fmt::format(" There is no figure for {}.", kind.title);
    return;
  }
  picture_.reserved.push_back({row.policy, std::string(kind.title), figuresOf(row), colourOf(kind),
                               *row.reserved_over_time, !row.ok()});
}

void Plot::write(const std::string& device) {
  picture_.subtitle = fmt::format(
      "Lines: what each allocator has reserved. Area: what the program asks for. "
      "Circles: the peaks.{}",
      picture_.cap ? " Dashes: the cap." : "");
  picture_.note = fmt::format("Replayed on {}.{}", device, not_replayed_);
  picture_.description = descriptionOf(picture_);
  file_.write(drawn(picture_));
}

}  // namespace cistern::command
