// The scopes and captures that are active, and which of them a request falls into: the capture that
// records its stream, else the scope that began last among those that catch it.
//
// A thread's own scopes are kept by the thread, so that asking for them takes no lock; the others
// are a list that is replaced whole when it changes, and only looked at when there is one. The list
// that comes when a scope ends is made when it begins: a capture must end whatever the host has.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/pool.hpp"
#include "allocator/engine/router.hpp"
#include "pools/pool_filter.hpp"

namespace cistern {

/// Thread-safe.
class Scopes {
 public:
  Scopes();
  Scopes(const Scopes&) = delete;
  Scopes& operator=(const Scopes&) = delete;

  /// Begins a scope. False when this thread, or for another filter anyone, has one of that pool.
  /// Throws std::bad_alloc, changing nothing, as the next does.
  bool begin(Pool& pool, const PoolFilter& filter);
  /// Begins a capture's; it catches what the recording covers. False when anyone has one of its
  /// pool that is not a thread's own.
  bool begin(const std::shared_ptr<Recording>& recording);
  /// Ends the calling thread's own scope of the pool, or else the one that is nobody's own, but no
  /// capture's. False when there is none.
  bool end(const Pool& pool) noexcept;
  void end(const Recording& recording) noexcept;

  /// How many are active, of all threads.
  int active() const { return active_.load(std::memory_order_acquire); }
  /// The same of one pool.
  int activeOf(const Pool& pool) const;
  Route route(Stream stream) const;

 private:
  struct Scope {
    std::uint64_t number;  ///< counts up; later ones are further in
    Pool* pool;
    std::shared_ptr<void> token;           ///< keeps the pool while a request is on its way
    std::optional<PoolFilter> filter;      ///< none for a capture
    std::shared_ptr<Recording> recording;  ///< a capture's
    bool catches(Stream stream) const;
  };
  using List = std::vector<std::shared_ptr<const Scope>>;
  struct Own {
    std::uint64_t scopes;  ///< which object's
    std::uint64_t number;
    Pool* pool;
  };

  std::shared_ptr<const List> list() const;
  bool add(Scope scope);
  template <class Which>
  bool remove(Which which) noexcept;

  const std::uint64_t id_;  ///< unique in the process
  std::atomic<std::uint64_t> next_{1};
  std::atomic<int> active_{0};
  std::atomic<std::size_t> shared_{0};  ///< scopes in the list
  mutable Mutex mutex_;
  std::shared_ptr<const List> list_ CISTERN_GUARDED_BY(mutex_);
  /// Empty, one for each scope in the list: the i-th has room for i + 1 scopes.
  std::vector<std::shared_ptr<List>> shorter_ CISTERN_GUARDED_BY(mutex_);
  std::vector<Pool*> pools_ CISTERN_GUARDED_BY(mutex_);  ///< of each active scope, in no order

  static thread_local std::vector<Own> own_;
};

}  // namespace cistern
