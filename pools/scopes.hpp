// The active scopes and captures, and the choice among them for a request. A request falls into the
// capture that records its stream, else into the scope that began last among those that catch it.
//
// Each thread keeps its own scopes, so that a look-up takes no lock. They end with the thread at
// the latest: nobody else could end them, and no request falls into them any more. The others are
// shared_scopes.hpp's. scopes.cpp begins and ends them; routing.cpp chooses.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "pools/pool_users.hpp"
#include "pools/shared_scopes.hpp"

namespace cistern {

/// Thread-safe.
class Scopes final : public Router {
 public:
  /// `ended_by_thread` is called when a thread has ended with scopes of its own, by that thread.
  explicit Scopes(std::function<void()> ended_by_thread);
  Scopes(const Scopes&) = delete;
  Scopes& operator=(const Scopes&) = delete;

  /// From now on the end of a thread calls nothing here. Returns when no such call is under way. No
  /// lock of the program or of pools may be held.
  void close() noexcept;

  /// Begins a scope and returns its number. 0 when this thread, or for another filter any thread,
  /// has a scope of that pool. `by` lets go of the scope's use of the pool. Throws std::bad_alloc,
  /// changing nothing, as the next does.
  std::uint64_t begin(Pool& pool, const PoolFilter& filter, LetGoBy by);
  /// Begins a capture's scope, which catches what the capture covers. False when there is a scope
  /// of its pool that is not a thread's own.
  bool begin(const std::shared_ptr<LiveCapture>& capture);
  /// Ends the calling thread's own scope of the pool, or else the one that is no thread's own and
  /// no capture's. False without such a scope.
  bool end(const Pool& pool) noexcept;
  /// Ends the scope of that number. False when it goes on, because it is another thread's own.
  bool end(std::uint64_t number) noexcept;
  void end(const LiveCapture& capture) noexcept;

  /// How many are active, of all threads.
  int active() const { return active_.load(std::memory_order_acquire); }
  /// The same for one pool, counting only scopes whose use `by` lets go.
  int activeOf(const Pool& pool, LetGoBy by) const;
  Route route(Stream stream, Asked asked) override;

 private:
  /// The link from threads to this object. Threads use it at their end, which may be later than
  /// this object's.
  struct Home {
    Mutex mutex{LockRank::kScopesHome};  ///< a thread that ends holds it while it uses `scopes`
    Scopes* scopes CISTERN_GUARDED_BY(mutex);  ///< null once closed
  };
  /// A thread's own scope. Its pool stays while the scope does: Pools refuses to let it go.
  struct Own {
    std::shared_ptr<Home> home;  ///< which object's
    std::uint64_t number;        ///< as of a SharedScope: both count together
    Pool* pool;                  ///< where the requests go
  };
  /// The calling thread's own, of every object. It goes when the thread ends.
  struct OwnScopes {
    std::vector<Own> list;  ///< the innermost last
    ~OwnScopes();
  };
  struct Active {
    const Pool* pool;
    LetGoBy by;  ///< who lets go of the scope's use of the pool; kItself for a capture
  };

  bool share(SharedScope scope, LetGoBy by);
  void unshare(const SharedScopes::Kept& scope) noexcept CISTERN_REQUIRES(mutex_);
  template <class Which>
  bool removeOwn(Which which) noexcept;
  void forget(std::uint64_t number) noexcept CISTERN_REQUIRES(mutex_);
  void endWithThread(const Own& own) noexcept;
  const Own* innermostOwn() const noexcept;

  const std::function<void()> ended_by_thread_;
  const std::shared_ptr<Home> home_;
  std::atomic<std::uint64_t> next_{1};         ///< the number of the next scope
  std::atomic<int> active_{0};                 ///< in all_, for threads without the lock
  std::atomic<std::size_t> active_shared_{0};  ///< in shared_, for threads without the lock
  mutable Mutex mutex_{LockRank::kScopes};
  SharedScopes shared_ CISTERN_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, Active> all_ CISTERN_GUARDED_BY(mutex_);  ///< by number
};

}  // namespace cistern
