// The engine's view of a context of the program: Cistern's Device over the driver's own functions.
//
// The engine's stream 0 is not a stream of the driver here. Its memory is cudaMalloc's, which every
// stream may use at once. So a wait "on stream 0" makes all streams wait. The progress of stream 0
// is the progress of all work that was submitted before the last cudaFree. The hub of the context's
// order comes after that work (context_order.hpp). If memory is handed out only when its work is
// complete (Reuse::kComplete), stream 0 is the host. Its queued work is always done, and a wait
// makes the host wait. All other streams are the driver's by their handles; the legacy default
// stream is kLegacyStream, which is not 0.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/device/page_trial.hpp"
#include "cistern/device.hpp"
#include "interop/preload/driver/context_order.hpp"
#include "interop/preload/driver/last_resort.hpp"
#include "interop/preload/driver/program_captures.hpp"

namespace cistern::preload::GPU_NAMESPACE {

/// When memory that cudaFree has taken back may be handed out again.
enum class Reuse : std::uint8_t {
  kInOrder,   ///< at once: a cut orders the uses on the device (context_order.hpp)
  kComplete,  ///< when the work that used it is complete
};

/// The functions of the Device contract are thread-safe; so are the others.
class DriverDevice final : public Device {
 public:
  /// Pre: the context is current. Throws DeviceFailure when its properties cannot be read.
  DriverDevice(const Functions& driver, ContextOrder& order, Captures& captures,
               const std::atomic<Reuse>& reuse);
  ~DriverDevice() override;

  std::string backend() const override { return kBackend; }
  std::string name() const override { return name_; }
  int ordinal() const override { return ordinal_; }
  VirtualMemoryCapability virtualMemory() const override { return virtual_memory_; }
  bool interprocessSupported() const override { return virtual_memory_.exportable; }
  bool driverPoolSupported() const override { return false; }

  /// Bytes of the device's memory that were taken from the driver and not given back.
  std::uint64_t reserved() const noexcept { return reserved_.load(std::memory_order_relaxed); }
  /// Bytes of the host's memory, the same way.
  std::uint64_t hostReserved() const noexcept {
    return host_reserved_.load(std::memory_order_relaxed);
  }
  /// Makes a page of the host's memory, unless one was made before, and undoes it. Returns the
  /// driver's failure if it refuses such pages. No room for one is no refusal. Pre: the context is
  /// current.
  Status tryHostPages();
  /// The context is gone: its streams and events with it, but not its pages.
  void contextIsGone() noexcept { gone_ = true; }
  /// The device with that ordinal may use this one's memory from now on.
  Status admit(int peer_ordinal);

  /// Calls with the context current.
  template <class Call>
  Code inContext(Call call) const;

 private:
  // The engine makes no other call on a device that serves a program. The program has made its
  // streams, its graphs and its copies itself.
  CISTERN_OVERRIDE_REQUIRED_CALLS
  Result<Address> doReserve(std::size_t bytes) override;
  Status doFreeReservation(Address address, std::size_t bytes) override;
  Result<Page> doCreatePage(std::size_t bytes) override;
  Result<Page> doCreateHostPage(std::size_t bytes) override;
  Status doReleasePage(Page page) override;
  Result<int> doExportPage(Page page) override;
  Result<Page> doImportPage(int descriptor) override;
  Status doMap(Address address, std::size_t bytes, Page page) override;
  Status doSetAccess(Address address, std::size_t bytes) override;
  Status doUnmap(Address address, std::size_t bytes) override;
  Result<CaptureInfo> doCaptureInfo(Stream stream) override;
  Result<CaptureMode> doExchangeCaptureMode(CaptureMode mode) override;
  Result<bool> doCanAccessPeer(int peer_ordinal) override;

  template <class Call>
  Code onStream(Stream stream, Call call);
  /// Calls `take` in the context, which takes memory: kOutOfMemory in another thread's last resort.
  template <class Take>
  Code grow(Take take);
  void findOut();
  /// Whether a page of that kind works; sets its granularity.
  Status tryKind(VirtualMemoryCapability& kind);
  /// Memory of the driver's.
  struct Taken {
    std::uint64_t bytes = 0;
    Location location = Location::kDevice;
  };
  /// `which`: its address, or the page's handle. Throws std::bad_alloc.
  void took(std::uint64_t which, const Taken& memory);
  void gaveBack(const Taken& memory) noexcept;
  /// A page that is not counted.
  Result<Page> makeHostPage(HostPages kind, std::size_t bytes);
  template <class Free>
  Status giveBack(Call call, std::uint64_t which, Free free);
  bool isComplete() const noexcept { return reuse_ == Reuse::kComplete; }
  Code allow(Address address, std::size_t bytes, const std::vector<int>& ordinals) const;
  DeviceError failure(Call call, Code result) const;
  Status outcome(Call call, Code result) const;
  template <class T>
  Result<T> outcome(Call call, Code result, T value) const;
  Result<bool> readiness(Call call, Code result) const;

  const Functions& driver_;
  ContextOrder& order_;
  Captures& captures_;
  const std::atomic<Reuse>& reuse_;
  std::string name_;
  int ordinal_ = 0;
  VirtualMemoryCapability virtual_memory_;
  std::atomic<std::uint64_t> reserved_{0}, host_reserved_{0};
  std::atomic<HostPages> host_pages_{HostPages::kUntried};
  std::atomic<bool> gone_{false};
  bool tried_ = false;  ///< what works was found out; only then a refusal says nothing of that

  Mutex mutex_{LockRank::kDriverDevice};
  std::map<std::uint64_t, Taken> taken_ CISTERN_GUARDED_BY(mutex_);     ///< pages, and mallocs
  std::map<Address, std::uint64_t> mapped_ CISTERN_GUARDED_BY(mutex_);  ///< made accessible
  std::vector<int> admitted_ CISTERN_GUARDED_BY(mutex_);                ///< this device first
};

template <class Call>
Code DriverDevice::inContext(Call call) const {
  return gone_ ? call() : driver_.inContext(order_.context(), call);
}

template <class Take>
Code DriverDevice::grow(Take take) {
  const auto here = [&] { return inContext(take); };
  return tried_ ? LastResort::grow(ordinal_, here) : here();
}

template <class T>
Result<T> DriverDevice::outcome(Call call, Code result, T value) const {
  if (result != kSuccess) return failure(call, result);
  return value;
}

}  // namespace cistern::preload::GPU_NAMESPACE
