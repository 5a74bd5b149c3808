#include "cistern/device.hpp"

#include <chrono>

#include "allocator/base/host_limits.hpp"
#include "allocator/device/background_account.hpp"

namespace cistern {
namespace {

/// The answer to a call that a backend leaves out, whatever its arguments.
auto notSupported(Call call) {
  return [call](const auto&...) {
    return DeviceError{call, ErrorKind::kNotSupported, 0, "not supported by this device", {}};
  };
}

}  // namespace

/// Counts a call, and times it if it is one of memoryCallNanoseconds().
class Device::CountedCall {
 public:
  CountedCall(Device& device, Call call)
      : device_(device), timed_(takesTime(call)), since_(timed_ ? clock() : 0) {
    const auto kind = std::size_t(call);
    device.counts_[kind].fetch_add(1, std::memory_order_relaxed);
    if (BackgroundAccount::active())
      device.background_counts_[kind].fetch_add(1, std::memory_order_relaxed);
  }
  ~CountedCall() {
    if (timed_) device_.memory_ns_.fetch_add(clock() - since_, std::memory_order_relaxed);
  }
  CountedCall(const CountedCall&) = delete;
  CountedCall& operator=(const CountedCall&) = delete;

 private:
  static constexpr bool takesTime(Call call) {
    return call == Call::kMalloc || call == Call::kFree || call == Call::kCreatePage ||
           call == Call::kCreateHostPage || call == Call::kReleasePage || call == Call::kMap ||
           call == Call::kSetAccess || call == Call::kUnmap;
  }
  // A simulated device's host clock stands still for calls in the background.
  std::uint64_t clock() const {
    return device_.hostNanoseconds() + device_.modelledBackgroundNanoseconds();
  }

  Device& device_;
  const bool timed_;
  const std::uint64_t since_;
};

// ---- The public calls: each counts itself and calls the backend -------------------------------

#define CISTERN_FORWARD(Kind, function, name, Returns, parameters, arguments) \
  Returns Device::function parameters {                                       \
    const CountedCall counted(*this, Call::k##Kind);                          \
    return do##Kind arguments;                                                \
  }
// A page that was not made for a fabric has no name there, whatever a driver claims.
#define CISTERN_FORWARD_FABRIC(Kind, function, Counted, Returns, parameters, arguments) \
  Returns Device::function parameters {                                                 \
    const CountedCall counted(*this, Call::k##Counted);                                 \
    if (!virtualMemory().fabric) return notSupported(Call::k##Counted) arguments;       \
    return do##Kind arguments;                                                          \
  }
CISTERN_DEVICE_CALLS(CISTERN_FORWARD, CISTERN_FORWARD, CISTERN_FORWARD, CISTERN_FORWARD_FABRIC)
#undef CISTERN_FORWARD
#undef CISTERN_FORWARD_FABRIC

// ---- What a backend may leave out --------------------------------------------------------------

#define CISTERN_REFUSE(Kind, function, name, Returns, parameters, arguments) \
  Returns Device::do##Kind parameters { return notSupported(Call::k##Kind) arguments; }
#define CISTERN_REFUSE_FABRIC(Kind, function, Counted, Returns, parameters, arguments) \
  Returns Device::do##Kind parameters { return notSupported(Call::k##Counted) arguments; }
CISTERN_DEVICE_CALLS(CISTERN_NO_ROW, CISTERN_REFUSE, CISTERN_NO_ROW, CISTERN_REFUSE_FABRIC)
#undef CISTERN_REFUSE
#undef CISTERN_REFUSE_FABRIC

Result<CaptureInfo> Device::doCaptureInfo(Stream) {
  if (captureSupported()) return notSupported(Call::kCaptureInfo)();
  return CaptureInfo{};
}

Result<CaptureInfo> Device::doCaptureFrontier(Stream, std::vector<GraphNode>& nodes) {
  if (captureSupported()) return notSupported(Call::kCaptureFrontier)();
  nodes.clear();
  return CaptureInfo{};
}

Result<CaptureMode> Device::doExchangeCaptureMode(CaptureMode) {
  if (captureSupported()) return notSupported(Call::kExchangeCaptureMode)();
  return CaptureMode::kRelaxed;
}

Result<bool> Device::doCanAccessPeer(int peer_ordinal) { return peer_ordinal == ordinal(); }

Status Device::doAdmitPeer(int peer_ordinal) {
  if (peer_ordinal == ordinal()) return {};
  return notSupported(Call::kAdmitPeer)();
}

// ---- Introspection -----------------------------------------------------------------------------

namespace {

CallCounts snapshotOf(const std::array<std::atomic<std::uint64_t>, kCallCount>& counts) {
  CallCounts snapshot{};
  for (std::size_t i = 0; i < kCallCount; ++i) {
    snapshot[i] = counts[i].load(std::memory_order_relaxed);
  }
  return snapshot;
}

}  // namespace

CallCounts Device::callCounts() const { return snapshotOf(counts_); }

CallCounts Device::backgroundCallCounts() const { return snapshotOf(background_counts_); }

std::uint64_t Device::pinnableBytes() const { return hostBytesLeft(); }

std::uint64_t Device::hostPageBytesLeft() const { return hostBytesLeftForPages(); }

std::uint64_t Device::hostNanoseconds() const {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

RelaxedCaptureMode::RelaxedCaptureMode(Device& device)
    : device_(device), before_(device.exchangeCaptureMode(CaptureMode::kRelaxed)) {}

RelaxedCaptureMode::~RelaxedCaptureMode() {
  if (before_.ok()) (void)device_.exchangeCaptureMode(before_.value());
}

}  // namespace cistern
