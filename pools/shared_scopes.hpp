// The scopes that are no thread's own: captures, and scopes with a filter on streams.
//
// Scopes of one stream are found by that stream. The others are in a list. It is replaced whole
// when it changes, and only read when it is not empty, so that a reader needs no lock once it has
// the list. The list for the time after a scope's end is made when the scope begins. So a capture
// can end even if the host is out of memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "allocator/engine/core/pool.hpp"
#include "cistern/pool.hpp"

namespace cistern {

struct SharedScope {
  std::uint64_t number;                  ///< counts up; later ones are further in
  Pool* pool;                            ///< where the requests go
  std::shared_ptr<void> token;           ///< keeps the pool while a request is on its way
  std::optional<PoolFilter> filter;      ///< none for a capture
  std::shared_ptr<LiveCapture> capture;  ///< null: it is no capture's

  /// The stream of a scope of one stream.
  std::optional<Stream> only() const { return filter ? filter->onlyStream() : std::nullopt; }
};

/// Not thread-safe; but what `of` and `candidates` return may be read without a lock.
class SharedScopes {
 public:
  using Kept = std::shared_ptr<const SharedScope>;
  using List = std::vector<Kept>;
  /// The scopes that a request on a stream may fall into.
  struct Candidates {
    std::shared_ptr<const List> list;  ///< all that are not of one stream, the innermost last
    Kept of_stream;                    ///< the innermost of that stream alone; null for none
  };

  /// Pre: its pool has none. Throws std::bad_alloc, changing nothing.
  void add(Kept scope);
  /// Pre: it is here.
  void remove(const Kept& scope) noexcept;
  /// The scope of that pool; null for none.
  Kept of(const Pool& pool) const noexcept;
  Candidates candidates(Stream stream) const noexcept;

 private:
  void addToList(Kept scope);
  void removeFromList(const Kept& scope) noexcept;

  std::shared_ptr<const List> list_ = std::make_shared<const List>();
  /// Empty, one for each scope in the list: the i-th has room for i + 1 scopes.
  std::vector<std::shared_ptr<List>> shorter_;
  /// Scopes of one stream, by the stream and their number.
  std::map<std::pair<std::uintptr_t, std::uint64_t>, Kept> by_stream_;
  std::unordered_map<const Pool*, Kept> by_pool_;  ///< all: a pool has one at most
};

}  // namespace cistern
