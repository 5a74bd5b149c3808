// Looks after each step at what a policy has reserved, for the picture of --plot.
#pragma once

#include <cstdint>

#include "interop/command/plot/picture.hpp"
#include "interop/command/replay/policy.hpp"
#include "interop/command/replay/timeline.hpp"
#include "interop/command/replay/watch.hpp"

namespace cistern::command {

class ReservedWatch final : public Watch {
 public:
  ReservedWatch(const Policy& policy, const Timeline& timeline)
      : policy_(policy), timeline_(timeline), curve_(timeline.span(), kPictureColumns) {}

  void stepped(const Step& step) override {
    now_ += timeline_.lengthOf(step);
    look();
  }
  // Within one step a policy may take memory and give it back: the peak tells.
  void look() override {
    const ReservedBytes reserved = policy_.reserved();
    if (reserved.peak > peak_) curve_.add(now_, peak_ = reserved.peak);
    curve_.add(now_, reserved.now);
  }

  const Curve& reserved() const { return curve_; }

 private:
  const Policy& policy_;
  const Timeline timeline_;
  std::uint64_t now_ = 0;
  std::uint64_t peak_ = 0;
  Curve curve_;
};

}  // namespace cistern::command
