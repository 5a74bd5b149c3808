// The active scopes and captures, and the choice among them for a request. A request falls into the
// capture that records its stream, else into the scope that began last among those that catch it.
//
// Each thread keeps its own scopes, so that a look-up takes no lock. They end with the thread at
// the latest: nobody else could end them, and no request falls into them any more. Scopes of one
// stream are found by that stream. The others are in a list. It is replaced whole when it changes,
// and only read when it is not empty. The list for the time after a scope's end is made when the
// scope begins. So a capture can end even if the host is out of memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/pools/router.hpp"
#include "cistern/pool.hpp"

namespace cistern {

/// Thread-safe.
class Scopes final : public Router {
 public:
  /// The owner of the scope's use of the pool: the program, which releases it by a verb, or the
  /// MemPoolScope or capture itself.
  enum class EndedBy : std::uint8_t { kVerb, kItself };

  /// `ended_by_thread` is called when a thread has ended with scopes of its own, by that thread.
  explicit Scopes(std::function<void()> ended_by_thread);
  Scopes(const Scopes&) = delete;
  Scopes& operator=(const Scopes&) = delete;

  /// From now on the end of a thread calls nothing here. Returns when no such call is under way. No
  /// lock of the program or of pools may be held.
  void close() noexcept;

  /// Begins a scope and returns its number. 0 when this thread, or for another filter any thread,
  /// has a scope of that pool. Throws std::bad_alloc, changing nothing, as the next does.
  std::uint64_t begin(Pool& pool, const PoolFilter& filter, EndedBy ended_by);
  /// Begins a capture's scope, which catches what the recording covers. False when there is a scope
  /// of its pool that is not a thread's own.
  bool begin(const std::shared_ptr<Recording>& recording);
  /// Ends the calling thread's own scope of the pool, or else the one that is no thread's own and
  /// no capture's. False without such a scope.
  bool end(const Pool& pool) noexcept;
  /// Ends the scope of that number. False when it goes on, because it is another thread's own.
  bool end(std::uint64_t number) noexcept;
  void end(const Recording& recording) noexcept;

  /// How many are active, of all threads.
  int active() const { return active_.load(std::memory_order_acquire); }
  /// The same for one pool, counting only scopes with that owner.
  int activeOf(const Pool& pool, EndedBy ended_by) const;
  Route route(Stream stream, Asked asked) override;

 private:
  struct Scope {
    std::uint64_t number;  ///< counts up; later ones are further in
    Pool* pool;
    std::shared_ptr<void> token;           ///< keeps the pool while a request is on its way
    std::optional<PoolFilter> filter;      ///< none for a capture
    std::shared_ptr<Recording> recording;  ///< a capture's
  };
  using Kept = std::shared_ptr<const Scope>;
  using List = std::vector<Kept>;
  /// The link from threads to this object. Threads use it at their end, which may be later than
  /// this object's.
  struct Home {
    Mutex mutex;
    Scopes* scopes CISTERN_GUARDED_BY(mutex);
  };
  /// Its pool stays while the scope does: Pools refuses to let it go.
  struct Own {
    std::shared_ptr<Home> home;  ///< which object's
    std::uint64_t number;
    Pool* pool;
  };
  /// The calling thread's own, of every object. It goes when the thread ends.
  struct OwnScopes {
    std::vector<Own> list;
    ~OwnScopes();
  };
  struct Active {
    const Pool* pool;
    EndedBy ended_by;
    bool captures = false;
    std::optional<Stream> only{};  ///< of a scope of one stream
  };
  /// The scopes that a request on a stream may fall into, apart from the thread's own.
  struct Candidates {
    std::shared_ptr<const List> list;
    Kept of_stream;  ///< the innermost of that stream alone; null for none
  };

  static Route captureOf(Stream stream, const List& scopes);
  template <class Which>
  static Route captureOf(Stream stream, const List& scopes, Which which);
  Candidates candidates(Stream stream) const;
  bool add(Scope scope, EndedBy ended_by);
  void keep(Kept scope) CISTERN_REQUIRES(mutex_);
  bool remove(std::uint64_t number) noexcept CISTERN_REQUIRES(mutex_);
  void removeFromList(std::uint64_t number) noexcept CISTERN_REQUIRES(mutex_);
  template <class Which>
  bool removeOwn(Which which) noexcept;
  void forget(std::uint64_t number) noexcept CISTERN_REQUIRES(mutex_);
  void endWithThread(const Own& own) noexcept;

  const std::function<void()> ended_by_thread_;
  const std::shared_ptr<Home> home_;
  std::atomic<std::uint64_t> next_{1};
  std::atomic<int> active_{0};
  std::atomic<std::size_t> shared_{0};  ///< scopes that are no thread's own
  mutable Mutex mutex_;
  std::shared_ptr<const List> list_ CISTERN_GUARDED_BY(mutex_);
  /// Empty, one for each scope in the list: the i-th has room for i + 1 scopes.
  std::vector<std::shared_ptr<List>> shorter_ CISTERN_GUARDED_BY(mutex_);
  /// Scopes of one stream, by the stream and their number.
  std::map<std::pair<std::uintptr_t, std::uint64_t>, Kept> by_stream_ CISTERN_GUARDED_BY(mutex_);
  /// The one scope of a pool that is no thread's own.
  std::unordered_map<const Pool*, std::uint64_t> shared_of_ CISTERN_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, Active> all_ CISTERN_GUARDED_BY(mutex_);  ///< by number
};

}  // namespace cistern
