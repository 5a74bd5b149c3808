// The pools of one allocator, and their users. A pool is there as long as it has users, and then
// drains: cistern/pool.hpp names the stages. The engine owns the memory, and the records of pools.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/engine.hpp"
#include "cistern/pool.hpp"

namespace cistern {

/// The one who ends a use of a pool: the program, by releasePool, or the user itself. Graphs,
/// MemPools and their scopes end their uses themselves.
enum class LetGoBy : std::uint8_t { kVerb, kItself };

/// A pool that is live or draining.
struct UsedPool {
  Pool* pool;       ///< the engine's record; null only while the engine makes it
  int counted = 0;  ///< uses that releasePool ends
  int kept = 0;     ///< uses that end by themselves: releasePool may not take them
  /// Its own id, which moves to the draining ids once nobody uses it. Moving it takes no host
  /// memory.
  std::list<MempoolId_t> own;
  std::list<MempoolId_t>::iterator self;  ///< that id, in either list

  int uses() const { return counted + kept; }
  int& usesOf(LetGoBy by) { return by == LetGoBy::kVerb ? counted : kept; }
};

/// Throws PoolError: "<verb>: pool <name> <why>".
[[noreturn]] void refusePool(const char* verb, MempoolId_t id, const std::string& why);
/// The same for a pool in host memory that is to lend to the default pool.
[[noreturn]] void refuseLending(const char* verb, MempoolId_t id);

/// Thread-safe. `verb` is the verb that an error names.
class PoolUsers {
 public:
  /// Keeps a pool, live or draining, from going while a verb works on it.
  struct Visit {
    explicit Visit(Pool& of) : pool(of), token(of.token()) {}
    Pool& pool;
    std::shared_ptr<void> token;  ///< the pool's own: a pool with a copy of it is not closed
  };

  explicit PoolUsers(Engine& engine) : engine_(engine) {}

  /// Guards the table. Scopes of a pool begin and end under it, so that the pool stays meanwhile.
  /// It comes before all of the engine's locks, except those of its hooks and of last-resort
  /// waiting.
  mutable Mutex mutex{LockRank::kPools};

  // ---- Users -----------------------------------------------------------------------------------

  /// Adds a user; makes the pool, with these traits, if it does not exist. Throws PoolError for
  /// {0, 0} and for a draining pool, and std::bad_alloc; both change nothing.
  void add(const char* verb, MempoolId_t id, const PoolTraits& traits, LetGoBy by);
  /// Removes a user. The last one's pool drains. Pre: there is such a user. Calls nothing of the
  /// program's; tellReleased does later.
  void drop(MempoolId_t id, LetGoBy by) noexcept CISTERN_REQUIRES(mutex);

  // ---- Looking up: each throws PoolError for a pool that is gone or never was ------------------

  const UsedPool& find(const char* verb, MempoolId_t id) const CISTERN_REQUIRES(mutex);
  /// Throws PoolError for a draining pool, too; so does visitLive.
  Pool& live(const char* verb, MempoolId_t id) const CISTERN_REQUIRES(mutex);
  Visit visit(const char* verb, MempoolId_t id) const;
  /// Whether there is such a pool, live or draining.
  bool knows(MempoolId_t id) const noexcept;
  Visit visitLive(const char* verb, MempoolId_t id) const;

  // ---- Pools without users ---------------------------------------------------------------------

  /// Tells observers which pools' last users have let go. Pre: no lock is held.
  void tellReleased() noexcept;
  /// Closes draining pools without memory, among the next `looks`, in turn. Returns their traits,
  /// to be destroyed without a lock: a source is the program's. Throws std::bad_alloc, changing
  /// nothing.
  std::vector<PoolTraits> closeDrained(std::size_t looks) CISTERN_REQUIRES(mutex);
  /// The pools that closeDrained(looks) looks at next. Throws std::bad_alloc.
  std::vector<MempoolId_t> drainingNext(std::size_t looks) const;
  /// closeDrained looks at this pool next, as something has changed there. No-op unless it drains.
  void lookFirstAt(MempoolId_t id) noexcept;

 private:
  void requireHostPages(const char* verb, MempoolId_t id, const PoolTraits& traits) const;
  UsedPool& open(MempoolId_t id, const PoolTraits& traits) CISTERN_REQUIRES(mutex);

  Engine& engine_;
  std::map<MempoolId_t, UsedPool> pools_ CISTERN_GUARDED_BY(mutex);  ///< live and draining
  /// Pools without a user: the next to look at comes first.
  std::list<MempoolId_t> draining_ids_ CISTERN_GUARDED_BY(mutex);
  /// Pools whose last user has let go, with room for one more of each pool: drop() takes no host
  /// memory. Observers know the first told_.
  std::vector<MempoolId_t> released_ CISTERN_GUARDED_BY(mutex);
  std::size_t told_ CISTERN_GUARDED_BY(mutex) = 0;  ///< releases reported to observers
};

}  // namespace cistern
