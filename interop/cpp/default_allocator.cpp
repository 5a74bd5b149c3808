#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <new>

#include "allocator/base/current_device.hpp"
#include "allocator/base/device_slots.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/base/process.hpp"
#include "allocator/device/open.hpp"
#include "cistern/memory.hpp"

namespace cistern {
namespace {

/// Opens the device that CISTERN_BACKEND names, or "auto". If that is the simulated device, for
/// want of another, a message says so once, and why. A program that was to run on a GPU would get
/// addresses of nothing.
std::unique_ptr<Device> openShared(int ordinal) {
  std::unique_ptr<Device> device = openDevice("auto", ordinal);
  static std::atomic<bool> said{false};
  if (isSimulated(device->backend()) && backendOfEnvironment() == "auto" && !said.exchange(true)) {
    std::fprintf(
        stderr,
        "cistern: %s; the device is simulated, and its addresses are not memory. "
        "(CISTERN_BACKEND=cuda makes this an error, CISTERN_BACKEND=sim says that it is meant.)\n",
        whySimulated(backends()).c_str());
  }
  return device;
}

/// A device and what stands on it. Made whole or not at all; never destroyed.
struct Shared {
  explicit Shared(int ordinal)
      : device(openShared(ordinal)), allocator(*device), pools(allocator), pinned(*device) {}
  const std::unique_ptr<Device> device;
  CachingAllocator allocator;
  Pools pools;
  PinnedAllocator pinned;
};

// The first device's, where none but that can be current until a guard chooses another: the process
// has one device, or simulated ones. Then no query is needed. Nor once another device has an
// allocator here, as its blocks are freed without a guard. A thread that frees one has it from a
// thread that saw either, and so sees it too.
constinit std::atomic<CachingAllocator*> first{nullptr};

CachingAllocator* only() noexcept {
  if (detail::another_device.load(std::memory_order_relaxed)) return nullptr;
  return first.load(std::memory_order_acquire);
}

class SharedAllocators {
 public:
  Shared* find(int device) const {
    return slots_[ordinalIndex(device)].load(std::memory_order_acquire);
  }
  /// A thread of the parent may have been making one. A driver may fork while it is opened.
  void restoreInChild() { making_.restoreInChild(); }
  Shared& at(int device) {
    if (Shared* const there = find(device)) return *there;
    return make(device);
  }
  template <class Visit>
  void forEach(Visit visit) const {
    for (int device = 0; device < made_.load(std::memory_order_acquire); ++device) {
      if (Shared* const one = find(device)) visit(*one);
    }
  }
  /// The one whose memory covers the address; null for none's.
  Shared* owner(Address address) const {
    for (int device = 0; device < made_.load(std::memory_order_acquire); ++device) {
      Shared* const one = find(device);
      if (one != nullptr && one->allocator.owns(toPointer(address))) return one;
    }
    return nullptr;
  }

 private:
  [[gnu::cold, gnu::noinline]] Shared& make(int device) {
    const MutexLock lock(making_);
    if (Shared* const there = find(device)) return *there;
    Shared* const made = std::make_unique<Shared>(device).release();
    if (device == 0 && (isSimulated(made->device->backend()) || devicesBeside(*made->device) == 1))
      first.store(&made->allocator, std::memory_order_release);
    if (device != 0) detail::another_device.store(true, std::memory_order_relaxed);
    slots_[ordinalIndex(device)].store(made, std::memory_order_release);
    if (device >= made_) made_.store(device + 1, std::memory_order_release);
    return *made;
  }

  std::array<std::atomic<Shared*>, std::size_t(kMaxDevices)> slots_{};
  std::atomic<int> made_{0};  ///< none is made for this device, or one after it
  Mutex making_{LockRank::kSharedAllocators};
};

// Without a destructor: static objects may free to the very end.
SharedAllocators& shared() {
  static SharedAllocators& all = []() -> SharedAllocators& {
    inChildOfFork([] { shared().restoreInChild(); });
    return *new SharedAllocators;
  }();
  return all;
}

CachingAllocator& current() {
  if (CachingAllocator* const one = only()) [[likely]]
    return *one;
  return allocator(currentDevice());
}

// Out of line: a process with one device does not come here.
[[gnu::noinline]] void* allocateOfMany(std::size_t bytes, Stream stream) {
  return allocator(currentDevice()).allocate(bytes, stream);
}
[[gnu::noinline]] void freeOfMany(void* pointer) noexcept {
  if (pointer == nullptr) return;
  if (Shared* const owner = shared().owner(toAddress(pointer)))
    return owner->allocator.free(pointer);
  try {
    allocator().free(pointer);       // which reports it
  } catch (const std::exception&) {  // no device: then nobody can have allocated it
    Misuse misuse;
    misuse.verb = "free";
    misuse.pointer = toAddress(pointer);
    defaultMisuseHook(misuse);
  }
}

}  // namespace

void detail::throwTooMany() { throw std::bad_alloc(); }

CachingAllocator& allocator(int device) { return shared().at(device).allocator; }

Pools& pools(int device) { return shared().at(device).pools; }

void* allocate(std::size_t bytes, Stream stream) {
  if (CachingAllocator* const one = only()) [[likely]]
    return one->allocate(bytes, stream);
  return allocateOfMany(bytes, stream);
}

PinnedAllocator& pinnedAllocator(int device) { return shared().at(device).pinned; }

void* allocate(std::size_t bytes) { return current().allocate(bytes); }

void* allocate(std::size_t bytes, Stream stream, std::size_t alignment) {
  return current().allocate(bytes, stream, alignment);
}

void free(void* pointer) noexcept {
  if (CachingAllocator* const one = only()) [[likely]]
    return one->free(pointer);
  freeOfMany(pointer);
}

void recordStream(void* pointer, Stream stream) {
  Shared* const owner = shared().owner(toAddress(pointer));
  (owner != nullptr ? owner->allocator : allocator()).recordStream(pointer, stream);
}

void mark(std::string_view name) {
  shared().forEach([&](Shared& one) { one.allocator.mark(name); });
}

}  // namespace cistern
