#include "pools/scopes.hpp"

#include <algorithm>
#include <iterator>

#include "allocator/engine/recording/recording.hpp"

namespace cistern {
namespace {

std::uint64_t nextId() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

thread_local std::vector<Scopes::Own> Scopes::own_;

Scopes::Scopes() : id_(nextId()), list_(std::make_shared<const List>()) {}

bool Scopes::Scope::catches(Stream stream) const {
  return recording ? recording->covers(stream) : filter->catches(stream);
}

std::shared_ptr<const Scopes::List> Scopes::list() const {
  const MutexLock lock(mutex_);
  return list_;
}

// ---- Beginning and ending ----------------------------------------------------------------------

bool Scopes::begin(Pool& pool, const PoolFilter& filter) {
  if (!filter.byThread()) return add({next_++, &pool, pool.token(), filter, nullptr});
  const auto mine = [&](const Own& own) { return own.scopes == id_ && own.pool == &pool; };
  if (std::any_of(own_.begin(), own_.end(), mine)) return false;
  own_.reserve(own_.size() + 1);
  {
    const MutexLock lock(mutex_);
    pools_.push_back(&pool);
  }
  own_.push_back({id_, next_++, &pool});
  ++active_;
  return true;
}

bool Scopes::begin(const std::shared_ptr<Recording>& recording) {
  return add({next_++, &recording->pool(), nullptr, std::nullopt, recording});
}

bool Scopes::add(Scope scope) {
  const MutexLock lock(mutex_);
  const auto same = [&](const auto& other) { return other->pool == scope.pool; };
  if (std::any_of(list_->begin(), list_->end(), same)) return false;
  auto longer = std::make_shared<List>();
  longer->reserve(list_->size() + 1);
  *longer = *list_;
  longer->push_back(std::make_shared<const Scope>(std::move(scope)));
  auto shorter = std::make_shared<List>();
  shorter->reserve(longer->size());
  shorter_.reserve(longer->size());
  pools_.push_back(longer->back()->pool);  // the last that may throw
  shorter_.push_back(std::move(shorter));
  list_ = std::move(longer);
  shared_ = list_->size();
  ++active_;
  return true;
}

template <class Which>
bool Scopes::remove(Which which) noexcept {
  const MutexLock lock(mutex_);
  const auto it = std::find_if(list_->begin(), list_->end(), which);
  if (it == list_->end()) return false;
  std::shared_ptr<List> shorter = std::move(shorter_.back());
  shorter_.pop_back();
  std::remove_copy(list_->begin(), list_->end(), std::back_inserter(*shorter), *it);
  pools_.erase(std::find(pools_.begin(), pools_.end(), (*it)->pool));
  list_ = std::move(shorter);
  shared_ = list_->size();
  --active_;
  return true;
}

bool Scopes::end(const Pool& pool) noexcept {
  const auto mine = [&](const Own& own) { return own.scopes == id_ && own.pool == &pool; };
  const auto it = std::find_if(own_.begin(), own_.end(), mine);
  if (it == own_.end()) {
    return remove([&](const auto& scope) { return scope->pool == &pool && scope->filter; });
  }
  own_.erase(it);
  const MutexLock lock(mutex_);
  pools_.erase(std::find(pools_.begin(), pools_.end(), &pool));
  --active_;
  return true;
}

void Scopes::end(const Recording& recording) noexcept {
  (void)remove([&](const auto& scope) { return scope->recording.get() == &recording; });
}

int Scopes::activeOf(const Pool& pool) const {
  const MutexLock lock(mutex_);
  return int(std::count(pools_.begin(), pools_.end(), &pool));
}

// ---- Routing -----------------------------------------------------------------------------------

// A capture comes before any scope: the graph will use what its streams are given, and only its
// pool keeps that in place.
Route Scopes::route(Stream stream) const {
  const auto own = std::find_if(own_.rbegin(), own_.rend(),
                                [&](const Own& scope) { return scope.scopes == id_; });
  const std::uint64_t inner = own != own_.rend() ? own->number : 0;
  if (shared_.load(std::memory_order_acquire) > 0) {
    const std::shared_ptr<const List> scopes = list();
    for (const auto& scope : *scopes) {
      if (scope->recording && scope->catches(stream))
        return {scope->pool, scope->recording, nullptr};
    }
    for (auto scope = scopes->rbegin(); scope != scopes->rend(); ++scope) {
      const Scope& s = **scope;
      if (s.number < inner) break;
      if (s.filter && s.catches(stream)) return {s.pool, nullptr, s.token};
    }
  }
  return own != own_.rend() ? Route{own->pool, nullptr, nullptr} : Route{};
}

}  // namespace cistern
