// The contexts of the program. Each has its order, a device, an allocator on it, and its cooling
// memory.
//
// A context is met when the program makes a stream or allocates in it; its allocator is made at the
// first allocation. Contexts are dropped when the program destroys or resets them, and their memory
// goes back to the driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "allocator/base/mutex.hpp"
#include "interop/preload/driver/driver_device.hpp"
#include "interop/preload/process/cancellation.hpp"
#include "interop/preload/served/blocks.hpp"
#include "interop/preload/served/cooling.hpp"
#include "interop/preload/served/served_pools.hpp"
#include "interop/preload/served/served_sharing.hpp"

namespace cistern::preload::GPU_NAMESPACE {

/// The allocator of one context, with its device.
struct Serving {
  /// Pre: the context is current. Throws what Device and CachingAllocator throw, but that there is
  /// no overflow (host_overflow.hpp).
  Serving(const Functions& driver, ContextOrder& order, Captures& captures,
          const std::atomic<Reuse>& reuse, const Options& options);
  /// Returns cached memory to the driver, after waiting for the device unless a graph is captured.
  /// False if another thread may have held memory in transit meanwhile.
  bool giveBack(const Captures& captures);
  DriverDevice device;
  Cooling cooling;
  CachingAllocator allocator;
  PoolUse pool;
};

/// The result of giving back: memory; none, but other threads may hold some in transit; or none.
enum class Gave : std::uint8_t { kSome, kOthersMay, kNone };

class Context {
 public:
  Context(const Functions& driver, Captures& captures, ContextHandle context)
      : order_(driver, captures, context) {}
  ContextOrder& order() noexcept { return order_; }
  Serving* serving() noexcept { return serving_.load(std::memory_order_acquire); }

 private:
  friend class Contexts;
  ContextOrder order_;
  std::atomic<Serving*> serving_{nullptr};
  std::vector<int> peers_;  // devices that may use its memory
  bool refused_ = false;    // its allocator could not be made
};

class Contexts {
 public:
  Blocks& blocks() noexcept { return blocks_; }
  Captures& captures() noexcept { return captures_; }
  Sharing& sharing() noexcept { return sharing_; }
  /// Whether a capture is under way in some context. Pre: maybe() of captures.
  bool capturing();

  /// The context that is current on this thread; null where none is.
  Context* current();
  /// The same where it is the one that the thread asked for last; else null. Pre: thatServe().
  Context* currentAsBefore() noexcept {
    ContextHandle now = kNoContext;
    const Functions& driver = *detail::loaded_functions.load(std::memory_order_acquire);
    const bool same = driver.currentContext(&now) == kSuccess && now == seen_.context &&
                      seen_.changes == changes_.load(std::memory_order_acquire);
    return same ? seen_.found : nullptr;
  }
  /// The same with its allocator, which is made if need be; null where that cannot be.
  Context* currentServed();
  Serving& serving(Context& context) { return *context.serving(); }

  /// The program has got a context. With a second one, memory is handed out only when complete.
  void met(ContextHandle context);
  /// Work is about to be submitted: the program has the context that is current.
  static void beforeWork();
  /// All that a context has goes back. Pre: the context exists and no thread uses it.
  void beforeEnd(ContextHandle context);
  /// The same where the context has ended already.
  void afterEnd(ContextHandle context);
  /// A stream of some context is about to be destroyed; `forget` is called with that context.
  template <class Forget>
  void destroying(StreamHandle stream, Forget forget);
  /// Whether the address lies in memory that some context's allocator has, or has opened.
  bool cover(Address address);
  /// The block that the address lies in, also one of another process's that is open here.
  std::optional<Blocks::Around> around(Address address);
  /// Returns the memory that the contexts of a device keep to the driver, except that of `but`.
  Gave giveBack(int device, const Serving* but = nullptr);
  /// The bytes of the device's memory that these contexts keep.
  std::uint64_t keptOn(int device);
  /// The part of the device's default pool that these contexts have. Throws std::bad_alloc, as do
  /// the next two.
  PoolBytes poolOn(int device);
  void resetPoolHigh(int device, void (PoolUse::*reset)() noexcept);
  /// PoolUse::trimTo, for all these contexts together.
  void trimPool(int device, std::uint64_t bytes);
  /// The device may use the context's memory from now on.
  void admit(ContextHandle owner, int device);

  /// Work may be submitted that no hook sees, from now on.
  void workIsUnseen();

  /// The process's, when a cudaMalloc was served: from then on they all are, but in captures, and
  /// in a child of fork. Else null.
  static Contexts* thatServe() noexcept { return that_serve_.load(std::memory_order_acquire); }
  void serve() noexcept { that_serve_ = this; }

  /// Whether any context was met.
  bool any() const noexcept { return met_any_; }
  /// Whether work on the stream is queued in that context. A stream that no hook has seen made is
  /// in none.
  bool has(Context& context, StreamHandle stream);
  /// In a child of fork: leaves the parent's state unchanged.
  void leaveToParent();
  bool leftToParent() const noexcept { return left_to_parent_; }

 private:
  /// A thread's memory of its current context. It looks anew when that context, or any, has
  /// changed.
  struct Seen {
    ContextHandle context;
    Context* found;
    std::uint64_t changes;
  };
  Context* meet(ContextHandle context);
  void makeServing(Context& context);
  void drop(ContextHandle context, bool gone);
  /// The allocators of the device's contexts. They stay while the lock is held.
  std::vector<Serving*> servingsOn(int device) CISTERN_REQUIRES(giving_back_);

  static inline constinit thread_local Seen seen_{};
  static inline constinit std::atomic<Contexts*> that_serve_{nullptr};
  Mutex giving_back_{LockRank::kGivingBack};  // while it is held, no context's allocator goes
  Mutex mutex_{LockRank::kContexts};
  std::unordered_map<ContextHandle, std::unique_ptr<Context>> contexts_;  // under mutex_, as is
  ContextHandle first_ = kNoContext;
  std::atomic<std::uint64_t> changes_{1};  // a thread looks its context up anew after each
  std::atomic<Reuse> reuse_{Reuse::kInOrder};
  bool work_is_unseen_ = false;  // under mutex_
  std::atomic<bool> met_any_{false};
  std::atomic<bool> several_{false};  // contexts were met
  std::atomic<bool> left_to_parent_{false};
  Captures captures_;
  Blocks blocks_;
  Sharing sharing_;
};

// Programs destroy few streams, so this queries every context.
template <class Forget>
void Contexts::destroying(StreamHandle stream, Forget forget) {
  Context* owner = nullptr;
  {
    const MutexLock lock(mutex_);
    for (const auto& [handle, context] : contexts_) {
      if (context->order().knows(stream)) owner = context.get();
    }
  }
  if (owner == nullptr) return;
  forget(*owner);
  owner->order().destroying(stream);
}

namespace detail {
inline std::atomic<Contexts*> all_contexts{nullptr};
[[gnu::cold]] Contexts& makeContexts() noexcept;
}  // namespace detail

/// The process's. Never destroyed.
inline Contexts& contexts() noexcept {
  Contexts* const there = detail::all_contexts.load(std::memory_order_acquire);
  if (there != nullptr) [[likely]]
    return *there;
  return detail::makeContexts();
}

inline void Contexts::beforeWork() {
  if constexpr (kContextsComeUnseen) {
    const ContextOrder* const order = ContextOrder::followed();
    ContextHandle now = kNoContext;
    if (order == nullptr || driver()->currentContext(&now) != kSuccess || now == order->context())
      return;
    const NotCancelled whole;
    contexts().met(now);
  }
}

}  // namespace cistern::preload::GPU_NAMESPACE
