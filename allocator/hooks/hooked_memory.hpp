// The program's hooks for memory that comes and goes, and the queue of what they are to hear.
//
// A range of addresses that the device is to unmap goes in two phases, while any hook is attached:
//
//   withdraw()   its owner has taken it out of use, so that no request can have it back
//   deliver()    the hooks hear of it, without a lock held; then Owner::finish calls the device
//
// The thread whose verb has withdrawn memory delivers at the verb's end, or before that if the
// request needs the room. One thread at a time delivers, in the order of the queue. What comes
// meanwhile is left to that thread: to wait for it would be a deadlock if its hook waits for this
// one. Only a request that would be refused waits.
//
// Each range that is mapped has a record, from before the device maps it until after the device has
// unmapped it. So there is host memory for both notices, and neither can fail:
//
//   kComing --came()--> kMapped --withdraw()--> kWithdrawn --gone()--> no record
//                          ^------- stays() --------'
//
//   - told  <=>  the hooks have heard that it is mapped, and not that it is unmapping.
//   - The device unmaps nothing that is told.
//   - due()  <=>  the queue has something, or a thread has its turn.
//   - No hook is attached, and no thread has its turn  =>  there are no records, or a hook has
//     detached itself; then the records go with the next turn.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/base/sections.hpp"
#include "allocator/hooks/hook_list.hpp"
#include "allocator/hooks/memory_log.hpp"
#include "cistern/report.hpp"

namespace cistern {

/// Thread-safe. While no hook is attached, a range that comes or goes costs a load.
class MemoryHooks {
 public:
  class Owner;
  struct Range;
  struct Event {
    Range* range;
    MemoryChange change;
  };
  enum class State : std::uint8_t { kComing, kMapped, kWithdrawn };
  /// The record of a range.
  struct Range {
    MemoryNotice notice{};
    State state = State::kComing;
    bool told = false;
    Owner* owner = nullptr;    ///< withdrawn: it finishes it
    void* range = nullptr;     ///< withdrawn: the owner's name for it
    std::list<Event> spare{};  ///< room for the most that the queue has of it: one of each kind
  };
  using Ranges = std::map<Address, Range>;

  /// The owner of withdrawn memory.
  class Owner {
   public:
    /// The hooks have heard that the range is unmapping: calls the device. Calls gone() or stays()
    /// for it, under the lock that guards `range`. No lock is held.
    virtual void finish(void* range) noexcept = 0;

   protected:
    Owner() = default;
    Owner(const Owner&) = default;
    Owner& operator=(const Owner&) = default;
    ~Owner() = default;
  };

  /// `log`: is told whether hooks hear of memory. It lives until end().
  explicit MemoryHooks(MemoryLog& log) : log_(log) {}
  /// Memory that goes back to the device is in hand meanwhile (InHand), for requests that would be
  /// refused. Call it before the first hook comes.
  void countIn(Sections& in_hand) noexcept { in_hand_ = &in_hand; }

  /// Whether hooks hear of memory. One that sees `false` under the lock that guards a range is
  /// before the moment at which attach() looks at what is there.
  bool on() const noexcept { return on_.load(std::memory_order_relaxed); }
  /// Whether anything is to be delivered, or just is.
  bool due() const noexcept { return due_.load(std::memory_order_relaxed); }
  /// Whether the calling thread is in a hook.
  bool inside() const noexcept { return HookScope::inside(&hooks_); }
  /// How many ranges the device has unmapped after the hooks heard of it.
  std::uint64_t returned() const noexcept { return returned_.load(std::memory_order_relaxed); }

  // ---- Memory: owners call these, under their locks. While off they do nothing.

  /// The range is about to be mapped. Throws std::bad_alloc, changing nothing.
  void expect(const MemoryNotice& of);
  /// The device has mapped it, and blocks may lie there from now on.
  void came(Address address) noexcept;
  /// expect() and came() for a range that has been there. No-op if its record is: the first hook
  /// may have looked where the range was not yet, or no longer.
  void joined(const MemoryNotice& of) {
    if (!on()) return;
    expect(of);
    came(of.address);
  }
  /// The device has unmapped it, or has not mapped it at all.
  void gone(Address address) noexcept;
  /// The range is out of use. False if the hooks need not hear of it: the device may be called at
  /// once. Otherwise the owner finishes it later. No-op for one that is withdrawn.
  bool withdraw(Address address, Owner& owner, void* range) noexcept;
  /// A range that was withdrawn stays mapped: the device has refused it, or it is in use again.
  void stays(Address address) noexcept;
  /// For an owner that calls the device without a lock. Once that has the range, another thread may
  /// get the address. So the record is taken out first: then it is gone, or it stays.
  Ranges::node_type takeOut(Address address) noexcept;
  void gone(Ranges::node_type record) noexcept;
  void stays(Ranges::node_type record) noexcept;

  // ---- Hooks: call these without a lock held.

  /// The hook hears first of what is there, then of what changes. `look` is called when the first
  /// hook comes: it calls addPresent() for each range that is mapped. Throws InvalidArgument for an
  /// empty function, std::bad_alloc, and what the hook throws of what is there: then it is not
  /// attached.
  template <class Look>
  HookId attach(MemoryHook hook, Look look) {
    const Turn turn(*this);
    if (!on()) {
      on_.store(true, std::memory_order_relaxed);
      log_.setHooks(true);
      look();
    }
    return attachNumbered(std::move(hook));
  }
  void addPresent(const MemoryNotice& of);
  /// As HookList::remove.
  bool detach(HookId hook);

  enum class Wait : std::uint8_t { kNo, kYes };
  /// Calls the hooks with all that is queued, and then the device for what was withdrawn. If
  /// another thread does so already, it goes on with this; kYes waits for it. Inside a hook it is
  /// put off until the hook is done. An exception of a hook is printed, and changes nothing.
  void deliver(Wait wait = Wait::kNo) noexcept {
    if (due()) [[unlikely]]
      deliverDue(wait);
  }
  /// How any thread of the process waits for another's turn: until `turns` is no longer `seen`.
  /// For hooks that need a lock which the waiting thread may hold.
  using WaitForTurn = void (*)(std::atomic<std::uint32_t>& turns, std::uint32_t seen);
  static void waitBy(WaitForTurn wait) noexcept { wait_for_turn_ = wait; }
  /// The hooks hear that everything is unmapping, and hear nothing more: the allocator ends.
  void end() noexcept;

 private:
  /// The calling thread's turn to deliver. It ends with all that is queued delivered. No-op inside
  /// a hook, where it is the thread's turn already.
  class Turn {
   public:
    explicit Turn(MemoryHooks& of) noexcept : of_(of), nested_(of.inside()) {
      if (!nested_) (void)of_.takeTurn(Wait::kYes);
    }
    ~Turn() {
      if (!nested_) of_.deliverAll();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    MemoryHooks& of_;
    const bool nested_;
  };

  HookId attachNumbered(MemoryHook hook);
  Range& addRange(const MemoryNotice& of) CISTERN_REQUIRES(mutex_);
  void queue(Range& range, MemoryChange change) noexcept CISTERN_REQUIRES(mutex_);
  std::vector<MemoryNotice> toldRanges() const;
  void deliverDue(Wait wait) noexcept;
  bool takeTurn(Wait wait) noexcept;
  bool endTurn() noexcept;
  void deliverAll() noexcept;
  bool deliverNext() noexcept;
  bool tellNextEnd(Address& from) noexcept;
  void tell(const MemoryNotice& notice) noexcept;

  inline static std::atomic<WaitForTurn> wait_for_turn_{nullptr};

  MemoryLog& log_;
  Sections* in_hand_ = nullptr;
  HookList<void, const MemoryNotice&> hooks_{"attachMemoryHook"};
  std::atomic<bool> on_{false}, due_{false};
  std::atomic<std::uint64_t> returned_{0};
  std::atomic<std::uint32_t> turns_{0};  ///< that have ended
  bool ended_ = false;                   ///< nobody hears anything more; of the thread's turn
  mutable Mutex mutex_{LockRank::kMemoryHooks};
  bool taken_ CISTERN_GUARDED_BY(mutex_) = false;  ///< a thread has its turn
  Ranges ranges_ CISTERN_GUARDED_BY(mutex_);
  std::list<Event> queue_ CISTERN_GUARDED_BY(mutex_);
};

/// Delivers at its end. It stands before all locks of a verb.
class DeliverAtEnd {
 public:
  explicit DeliverAtEnd(MemoryHooks& hooks) noexcept : hooks_(hooks) {}
  ~DeliverAtEnd() { hooks_.deliver(); }
  DeliverAtEnd(const DeliverAtEnd&) = delete;
  DeliverAtEnd& operator=(const DeliverAtEnd&) = delete;

 private:
  MemoryHooks& hooks_;
};

}  // namespace cistern
