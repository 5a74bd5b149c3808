#include "pools/scopes.hpp"

#include <algorithm>
#include <utility>

#include "allocator/base/thread_slots.hpp"
#include "allocator/engine/capture/live_capture.hpp"

namespace cistern {

Scopes::Scopes(std::function<void()> ended_by_thread)
    : ended_by_thread_(std::move(ended_by_thread)), home_(std::make_shared<Home>()) {
  const MutexLock lock(home_->mutex);
  home_->scopes = this;
}

void Scopes::close() noexcept {
  const MutexLock lock(home_->mutex);
  home_->scopes = nullptr;
}

int Scopes::activeOf(const Pool& pool, LetGoBy by) const {
  const MutexLock lock(mutex_);
  return int(std::count_if(all_.begin(), all_.end(), [&](const auto& active) {
    return active.second.pool == &pool && active.second.by == by;
  }));
}

// ---- Beginning ---------------------------------------------------------------------------------

std::uint64_t Scopes::begin(Pool& pool, const PoolFilter& filter, LetGoBy by) {
  const std::uint64_t number = next_++;
  if (!filter.byThread())
    return share({number, &pool, pool.token(), filter, nullptr}, by) ? number : 0;
  std::vector<Own>& own = ThreadSlot<OwnScopes>::mine().list;
  const auto same = [&](const Own& of) { return of.home == home_ && of.pool == &pool; };
  if (std::any_of(own.begin(), own.end(), same)) return 0;
  own.reserve(own.size() + 1);
  {
    const MutexLock lock(mutex_);
    all_.emplace(number, Active{&pool, by});
  }
  own.push_back({home_, number, &pool});
  ++active_;
  return number;
}

bool Scopes::begin(const std::shared_ptr<LiveCapture>& capture) {
  return share({next_++, &capture->pool(), nullptr, std::nullopt, capture}, LetGoBy::kItself);
}

bool Scopes::share(SharedScope scope, LetGoBy by) {
  const MutexLock lock(mutex_);
  if (shared_.of(*scope.pool)) return false;
  const auto active = all_.emplace(scope.number, Active{scope.pool, by}).first;
  try {
    shared_.add(std::make_shared<const SharedScope>(std::move(scope)));
  } catch (...) {
    all_.erase(active);
    throw;
  }
  ++active_shared_;
  ++active_;
  return true;
}

// ---- Ending ------------------------------------------------------------------------------------

bool Scopes::end(const Pool& pool) noexcept {
  if (removeOwn([&](const Own& own) { return own.pool == &pool; })) return true;
  const MutexLock lock(mutex_);
  const SharedScopes::Kept scope = shared_.of(pool);
  if (!scope || scope->capture) return false;
  unshare(scope);
  return true;
}

bool Scopes::end(std::uint64_t number) noexcept {
  if (removeOwn([&](const Own& own) { return own.number == number; })) return true;
  const MutexLock lock(mutex_);
  const auto active = all_.find(number);
  if (active == all_.end()) return true;
  const SharedScopes::Kept scope = shared_.of(*active->second.pool);
  if (!scope || scope->number != number) return false;
  unshare(scope);
  return true;
}

void Scopes::end(const LiveCapture& capture) noexcept {
  const MutexLock lock(mutex_);
  const SharedScopes::Kept scope = shared_.of(capture.pool());
  if (scope && scope->capture.get() == &capture) unshare(scope);
}

void Scopes::unshare(const SharedScopes::Kept& scope) noexcept {
  shared_.remove(scope);
  forget(scope->number);
  --active_shared_;
}

// Removes one of the calling thread's own scopes.
template <class Which>
bool Scopes::removeOwn(Which which) noexcept {
  OwnScopes* const mine = ThreadSlot<OwnScopes>::find();
  if (mine == nullptr) return false;
  const auto it = std::find_if(mine->list.begin(), mine->list.end(),
                               [&](const Own& own) { return own.home == home_ && which(own); });
  if (it == mine->list.end()) return false;
  const MutexLock lock(mutex_);
  forget(it->number);
  mine->list.erase(it);
  return true;
}

void Scopes::forget(std::uint64_t number) noexcept {
  all_.erase(number);
  --active_;
}

Scopes::OwnScopes::~OwnScopes() {
  for (const Own& own : list) {
    const MutexLock lock(own.home->mutex);
    if (own.home->scopes) own.home->scopes->endWithThread(own);
  }
}

void Scopes::endWithThread(const Own& own) noexcept {
  {
    const MutexLock lock(mutex_);
    forget(own.number);
  }
  ended_by_thread_();
}

// The innermost of the calling thread's own scopes; null for none.
const Scopes::Own* Scopes::innermostOwn() const noexcept {
  const OwnScopes* const mine = ThreadSlot<OwnScopes>::find();
  if (mine == nullptr) return nullptr;
  const auto here = [this](const Own& one) { return one.home == home_; };
  const auto last = std::find_if(mine->list.rbegin(), mine->list.rend(), here);
  return last != mine->list.rend() ? &*last : nullptr;
}

}  // namespace cistern
