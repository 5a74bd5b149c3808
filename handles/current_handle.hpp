// A library's getter: the handle of this thread for the current device, on the current stream.
//
// A struct describes a library (docs/handles.md has one in ten lines):
//
//   struct Library {
//     using Handle = ...;                                   // small and copyable
//     static constexpr const char* kName = "...";           // for messages and statistics
//     static Handle create(int device);                     // throws when it cannot
//     static void destroy(Handle) noexcept;                 // left out: never destroyed
//     static void setStream(Handle, Stream);                // left out: it has none
//     static Stream streamOf(Handle);                       // left out: it cannot tell
//     static std::size_t workspaceBytes(int device);        // left out: it takes no workspace;
//     static void setWorkspace(Handle, void*, std::size_t); // given only together
//   };
#pragma once

#include <cstdlib>
#include <memory>

#include "allocator/base/current_device.hpp"
#include "allocator/base/thread_slots.hpp"
#include "handles/handle_pool.hpp"
#include "handles/memory_source.hpp"
#include "handles/workspaces.hpp"

namespace cistern::handles {

template <class L>
inline constexpr bool kIsDestroyed = requires(typename L::Handle h) {
  L::destroy(h);
};
template <class L>
inline constexpr bool kHasStream = requires(typename L::Handle h, Stream s) {
  L::setStream(h, s);
};
template <class L>
inline constexpr bool kKnowsStream = requires(typename L::Handle h) {
  L::streamOf(h);
};
template <class L>
inline constexpr bool kTakesWorkspace = requires(typename L::Handle h, void* p, std::size_t n) {
  L::setWorkspace(h, p, n);
  L::workspaceBytes(0);
};

template <class L>
constexpr auto destroyOf() {
  if constexpr (kIsDestroyed<L>) {
    return &L::destroy;
  } else {
    return nullptr;
  }
}

template <class L>
using PoolOf = DeviceThreadHandlePool<typename L::Handle, &L::create, destroyOf<L>()>;

/// The library's pool: one for the process. It is never destroyed, because threads may still use it
/// while static objects go. Its free handles are destroyed at the end of main.
template <class L>
PoolOf<L>& poolOf() {
  static PoolOf<L>& pool = *new PoolOf<L>(L::kName);
  return pool;
}

/// Called after a handle was created. An exit handler runs before the tear-down of whatever was set
/// up before its registration. That is all that the library needs to destroy a handle.
template <class L>
void destroyFreeAtExit() {
  if constexpr (kIsDestroyed<L>) {
    static const int registered = std::atexit([] { poolOf<L>().destroyFree(); });
    (void)registered;
  }
}

/// A thread's handles of one library.
template <class L>
class ThreadHandles {
 public:
  ThreadHandles() : window_(poolOf<L>().newPoolWindow()) {}

  /// The handle for `device`, on the thread's current stream there.
  typename L::Handle get(int device) {
    const typename L::Handle handle = window_->reserve(device);
    Bound& bound = bound_[std::size_t(device)];
    if (!bound.seen) [[unlikely]]
      bound.seen = (destroyFreeAtExit<L>(), true);
    bind(handle, device, bound);
    return handle;
  }

 private:
  struct Bound {
    BoundWorkspace workspace;
    bool seen = false;
  };

  static void bind(typename L::Handle handle, int device, Bound& bound) {
    if constexpr (kHasStream<L>) {
      const Stream stream = currentStream(device);
      const bool changed = needsStream(handle, stream);
      if (changed) L::setStream(handle, stream);
      if constexpr (kTakesWorkspace<L>) bindWorkspace(handle, device, stream, changed, bound);
    } else {
      (void)handle, (void)device, (void)bound;
    }
  }

  // Queries the library, because the program may have set a stream on the handle itself.
  static bool needsStream(typename L::Handle handle, Stream stream) {
    if constexpr (kKnowsStream<L>) {
      return L::streamOf(handle) != stream;
    } else {
      (void)handle, (void)stream;
      return true;
    }
  }

  // Pre: the handle's stream is `stream`. Setting a stream takes the workspace away again.
  static void bindWorkspace(typename L::Handle handle, int device, Stream stream,
                            bool stream_was_set, Bound& bound) {
    const std::uint64_t epoch = workspaceEpoch();
    CachingAllocator* const allocator = workspaceAllocator(device);
    const WorkspacePool pool = allocator ? poolFor(*allocator, stream) : WorkspacePool{};
    const BoundWorkspace& before = bound.workspace;
    if (!stream_was_set && before.stream == stream && before.epoch == epoch && before.pool == pool)
        [[likely]] {
      return;
    }
    bound.workspace = {};  // until it is made, nothing is known
    rebind(handle, device, allocator, {stream, pool, epoch}, stream_was_set);
    bound.workspace = {stream, pool, epoch};
  }

  // Out of line, so that a hit stays small.
  [[gnu::noinline]] static void rebind(typename L::Handle handle, int device,
                                       CachingAllocator* allocator, const BoundWorkspace& now,
                                       bool stream_was_set) {
    Workspace wanted;
    if (allocator != nullptr) {
      const WorkspaceKey key{device, now.pool, handle, now.stream};
      wanted = workspaces().get(key, &L::workspaceBytes, *allocator);
    }
    if (wanted.bytes != 0) {
      L::setWorkspace(handle, wanted.memory, wanted.bytes);
    } else if (!stream_was_set) {
      L::setStream(handle, now.stream);  // back to the library's own workspace
    }
  }

  std::unique_ptr<typename PoolOf<L>::PoolWindow> window_;
  std::array<Bound, std::size_t(kMaxDevices)> bound_{};
};

/// The getter. Throws what the struct's functions throw, OutOfMemory for a workspace, OptionError
/// for a malformed size of one. The handle is the thread's until the thread ends. Call the getter
/// again before each use, so that stream and workspace are the current ones.
template <class L>
typename L::Handle currentHandle() {
  return ThreadSlot<ThreadHandles<L>>::mine().get(currentDevice());
}

/// For a library whose calls each take a stream and a workspace (cuBLASLt): the workspace for the
/// current handle on the current stream. Nothing without an allocator.
template <class L>
Workspace currentWorkspace(std::size_t (*bytes_on)(int device)) {
  const int device = currentDevice();
  CachingAllocator* const allocator = workspaceAllocator(device);
  if (allocator == nullptr) return {};
  const Stream stream = currentStream(device);
  const void* const handle = ThreadSlot<ThreadHandles<L>>::mine().get(device);
  const WorkspaceKey key{device, poolFor(*allocator, stream), handle, stream};
  return workspaces().get(key, bytes_on, *allocator);
}

}  // namespace cistern::handles
