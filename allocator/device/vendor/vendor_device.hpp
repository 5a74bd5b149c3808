// The device on a vendor's runtime. Its functions are in vendor_memory.cpp, virtual_memory.cpp,
// vendor_streams.cpp, capture.cpp and vendor_pool.cpp; open_vendor.cpp makes one.
//
// Every call follows one pattern: give the outputs values, make the device current, call, turn a
// code into a DeviceError. Without a driver these runtimes leave the outputs untouched.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/base/process.hpp"
#include "allocator/device/page_trial.hpp"
#include "allocator/device/vendor/alias.hpp"
#include "cistern/device.hpp"

namespace cistern::GPU_NAMESPACE {

/// A device's constant properties, read once when it is opened.
struct Facts {
  int ordinal = 0;
  std::string name;
  Current current{};  ///< must be current on a thread for its calls to reach this device
  VirtualMemoryCapability virtual_memory;
  int interprocess = 0;
  int driver_pool = 0;
};

/// Removes `error` from the thread's last error, where it would be blamed on the user's next
/// launch. Another error that was there before us stays.
void forget(Error error);

/// The failure of `call` with `error`, which is forgotten.
DeviceError failure(Call call, Error error);

/// Success, or failure(call, error).
Status outcome(Call call, Error error);

/// `value`, or failure(call, error).
template <class T>
Result<T> outcome(Call call, Error error, T value) {
  if (error != kSuccess) return failure(call, error);
  return value;
}

inline StreamHandle handleOf(Stream stream) { return reinterpret_cast<StreamHandle>(stream.raw); }
inline EventHandle handleOf(Event event) { return reinterpret_cast<EventHandle>(event.raw); }
inline GraphHandle handleOf(DeviceGraph graph) { return reinterpret_cast<GraphHandle>(graph.raw); }
inline GraphExecHandle handleOf(DeviceGraphExec exec) {
  return reinterpret_cast<GraphExecHandle>(exec.raw);
}
inline GraphNodeHandle handleOf(GraphNode node) {
  return reinterpret_cast<GraphNodeHandle>(node.raw);
}
/// A vendor's handle as the contract carries it.
template <class Handle>
std::uintptr_t rawOf(Handle handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

/// Makes `current` current, calls, and sets back what was current before. The first error of the
/// three steps; `call` does not run when the first step fails.
template <class Function>
Error withCurrent(Current current, Function&& call) {
  Current before{};
  const Error asked = getCurrent(&before);
  if (asked != kSuccess) return asked;
  if (before == current) return call();
  const Error set = setCurrent(current);
  if (set != kSuccess) return set;
  const Error error = call();
  const Error restored = setBack(before);
  return error != kSuccess ? error : restored;
}

class VendorDevice final : public Device {
 public:
  explicit VendorDevice(Facts facts)
      : facts_(std::move(facts)), admitted_{VirtualMemory::readAndWrite(facts_.ordinal)} {}
  ~VendorDevice() override;

  std::string backend() const override { return kBackend; }
  std::string name() const override { return facts_.name; }
  int ordinal() const override { return facts_.ordinal; }
  VirtualMemoryCapability virtualMemory() const override { return facts_.virtual_memory; }
  bool isPerThread(Stream stream) const override {
    return handleOf(stream) == GPU(StreamPerThread);
  }
  bool interprocessSupported() const override { return facts_.interprocess != 0; }
  bool driverPoolSupported() const override { return facts_.driver_pool != 0; }

 private:
  template <class Function>
  Error onDevice(Function&& call) const {
    return withCurrent(facts_.current, std::forward<Function>(call));
  }

  CISTERN_OVERRIDE_ALL_CALLS
  Result<Page> createHostPage(HostPages kind, std::size_t bytes);
  HostPages hostPages();
  Error admit(int peer_ordinal);
  Error driverPoolHandle(PoolHandle* pool);

  /// A mapping, noted for peers that are admitted later.
  struct Mapped {
    std::size_t bytes;
    bool accessible;
  };
  Error unmapEach(Address address, std::size_t bytes) CISTERN_REQUIRES(access_mutex_);
  bool isThere(Address address, const Mapped& mapped) CISTERN_REQUIRES(access_mutex_);

  const Facts facts_;
  const Birthplace made_;
  Mutex access_mutex_{LockRank::kPeers};
  std::map<Address, Mapped> mapped_ CISTERN_GUARDED_BY(access_mutex_);
  /// The devices that may use the mappings: this one, then the peers.
  std::vector<VirtualMemory::Access> admitted_ CISTERN_GUARDED_BY(access_mutex_);
  std::atomic<HostPages> host_pages_{HostPages::kUntried};
  Mutex pool_mutex_{LockRank::kDriverPool};
  PoolHandle pool_ CISTERN_GUARDED_BY(pool_mutex_) = nullptr;  ///< made when first needed
};

}  // namespace cistern::GPU_NAMESPACE
