// A pool of one library's handles, for each device, and the window through which a thread uses it.
//
// A thread keeps its window's handle until the window goes. So a later reserve() only reads an
// array, without a lock. There are never more handles than there were threads at once. The pool has
// no cap: threads that wait for each other would deadlock on one.
//
// A window may outlive its pool: both hold what they share (Core). Then its handles are leaked on
// purpose, and reserve() is an error.
// Read next: current_handle.hpp, which makes a library's getter out of a pool.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "allocator/base/device_slots.hpp"
#include "allocator/base/process.hpp"
#include "cistern/error.hpp"
#include "handles/handle_shelf.hpp"
#include "handles/handle_statistics.hpp"

namespace cistern {

/// A window's pool is gone.
class HandlePoolGone : public Error {
 public:
  using Error::Error;
};

/// `kCreate(device)` makes a handle and throws when it cannot. `kDestroy(handle)` destroys one and
/// must not throw; nullptr says that this library's handles are never destroyed.
template <class Handle, auto kCreate, auto kDestroy>
class DeviceThreadHandlePool final : private HandleCountsSource {
  static_assert(std::is_trivially_copyable_v<Handle>);
  using Shelf = HandleShelf<Handle>;

  struct Core {
    explicit Core(std::string library) : name(std::move(library)) {}

    /// The device's shelf. The shelves of a closed core are closed, whichever comes first, this or
    /// close().
    Shelf& shelf(int device) {
      Shelf& found = shelves.at(device);
      if (closed.load()) found.close();
      return found;
    }

    const std::string name;
    const Birthplace made;
    DeviceSlots<Shelf> shelves;
    std::atomic<bool> closed{false};
  };

 public:
  static constexpr bool kDestroys = !std::is_same_v<decltype(kDestroy), std::nullptr_t>;
  class PoolWindow;

  explicit DeviceThreadHandlePool(std::string library)
      : core_(std::make_shared<Core>(std::move(library))) {
    (void)driverMayBeCalled();  // from now on it knows of the process' end
    enlist();
  }
  /// Destroys the free handles. Leaks them instead if the driver may no longer be called, if the
  /// library's handles are never destroyed, and in a child of fork.
  ~DeviceThreadHandlePool() {
    delist();
    if (!core_->made.isHere()) {
      std::construct_at(&core_);
      return;
    }
    core_->closed.store(true);
    core_->shelves.forEach([](int, Shelf& shelf) { shelf.close(); });
    emptyShelves(kDestroys && driverMayBeCalled() ? &destroyOne : nullptr);
  }

  /// A thread's own. The pool may go before it.
  std::unique_ptr<PoolWindow> newPoolWindow() { return std::make_unique<PoolWindow>(core_); }

  /// Destroys the handles that are free now, and leaves the pool usable. Does nothing for a library
  /// whose handles are never destroyed, or past the end of main.
  void destroyFree() noexcept {
    if (kDestroys && core_->made.isHere() && driverMayBeCalled()) emptyShelves(&destroyOne);
  }

  HandleCounts counts(int device) const {
    const Shelf* shelf = core_->shelves.find(device);
    return shelf == nullptr || !core_->made.isHere() ? HandleCounts{} : shelf->counts();
  }

 private:
  static void destroyOne(Handle handle) noexcept {
    if constexpr (kDestroys) kDestroy(handle);
  }
  // Not by forEach: the library is not called under a lock.
  void emptyShelves(void (*destroy)(Handle) noexcept) noexcept {
    for (int device = 0; device < kMaxDevices; ++device) {
      if (Shelf* shelf = core_->shelves.find(device)) shelf->empty(destroy);
    }
  }

  // In a child of fork the handles are the parent's, and so may be the locks.
  void appendTo(std::vector<HandleStats>& all) const override {
    if (!core_->made.isHere()) return;
    core_->shelves.forEach([&](int device, const Shelf& shelf) {
      all.push_back({core_->name, device, shelf.counts()});
    });
  }

  std::shared_ptr<Core> core_;
};

/// Used by one thread at a time.
template <class Handle, auto kCreate, auto kDestroy>
class DeviceThreadHandlePool<Handle, kCreate, kDestroy>::PoolWindow {
 public:
  explicit PoolWindow(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~PoolWindow() {
    if (!core_->made.isHere()) return;
    for (int device = 0; device < kMaxDevices; ++device) {
      if (const auto& handle = held_[std::size_t(device)])
        core_->shelves.find(device)->put(*handle);
    }
  }
  PoolWindow(const PoolWindow&) = delete;
  PoolWindow& operator=(const PoolWindow&) = delete;

  /// The thread's handle for a device: the same one each time. The first time, one that another
  /// thread gave back, or a new one. Throws what kCreate throws: then nothing has changed and the
  /// next try is a new one. Throws HandlePoolGone, InvalidArgument for an ordinal out of range, and
  /// Error in a child of fork if the thread has no handle.
  Handle reserve(int device) {
    const std::optional<Handle>& mine = held_[ordinalIndex(device)];
    if (mine && !core_->closed.load(std::memory_order_relaxed)) [[likely]]
      return *mine;
    return reserveSlow(device);
  }

 private:
  Handle reserveSlow(int device) {
    core_->made.requireHere("reserve");
    if (core_->closed.load()) {
      throw HandlePoolGone(core_->name +
                           ": the pool of its handles is gone: no handle for device " +
                           std::to_string(device));
    }
    Shelf& shelf = core_->shelf(device);
    std::optional<Handle> handle = shelf.take();
    if (!handle) handle = create(shelf, device);
    held_[std::size_t(device)] = handle;
    return *handle;
  }

  static Handle create(Shelf& shelf, int device) {
    shelf.prepareForOneMore();
    try {
      const Handle made = kCreate(device);
      shelf.noteCreated();
      return made;
    } catch (...) {
      shelf.noteFailed();
      throw;
    }
  }

  std::shared_ptr<Core> core_;
  std::array<std::optional<Handle>, std::size_t(kMaxDevices)> held_{};
};

}  // namespace cistern
