// A device in front of another one: every call, and every question, goes to the one behind. A test
// derives from it, and does something around the calls or answers some of them itself.
#pragma once

#include <string>

#include "cistern/device.hpp"

namespace cistern::test {

/// `Derived` derives from ForwardingDevice<Derived>. If it hides `through`, that is called for
/// every call. It returns what `forward(behind)` returns, which makes the call.
template <class Derived>
class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(Device& behind) : behind_(behind) {}

  std::string backend() const override { return behind_.backend(); }
  std::string name() const override { return behind_.name(); }
  int ordinal() const override { return behind_.ordinal(); }
  VirtualMemoryCapability virtualMemory() const override { return behind_.virtualMemory(); }
  bool isPerThread(Stream stream) const override { return behind_.isPerThread(stream); }
  bool captureSupported() const override { return behind_.captureSupported(); }
  bool interprocessSupported() const override { return behind_.interprocessSupported(); }
  bool driverPoolSupported() const override { return behind_.driverPoolSupported(); }
  std::uint64_t modelledNanoseconds() const override { return behind_.modelledNanoseconds(); }
  std::uint64_t modelledBackgroundNanoseconds() const override {
    return behind_.modelledBackgroundNanoseconds();
  }
  std::uint64_t hostNanoseconds() const override { return behind_.hostNanoseconds(); }
  std::uint64_t pinnableBytes() const override { return behind_.pinnableBytes(); }
  std::uint64_t hostPageBytesLeft() const override { return behind_.hostPageBytesLeft(); }

  template <class Forward>
  auto through(Call, Forward forward) {
    return forward(behind_);
  }

 protected:
  Device& behind_;

 private:
#define CISTERN_GO_THROUGH(Kind, function, name, Returns, parameters, arguments)   \
  Returns do##Kind parameters override {                                           \
    return static_cast<Derived&>(*this).through(                                   \
        Call::k##Kind, [&](Device& behind) { return behind.function arguments; }); \
  }
#define CISTERN_GO_THROUGH_FABRIC(Kind, function, Counted, Returns, parameters, arguments) \
  Returns do##Kind parameters override {                                                   \
    return static_cast<Derived&>(*this).through(                                           \
        Call::k##Counted, [&](Device& behind) { return behind.function arguments; });      \
  }
  CISTERN_DEVICE_CALLS(CISTERN_GO_THROUGH, CISTERN_GO_THROUGH, CISTERN_GO_THROUGH,
                       CISTERN_GO_THROUGH_FABRIC)
#undef CISTERN_GO_THROUGH
#undef CISTERN_GO_THROUGH_FABRIC
};

}  // namespace cistern::test
