#include "pools/scopes.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "allocator/base/thread_slots.hpp"
#include "allocator/engine/capture/recording.hpp"

namespace cistern {

Scopes::Scopes(std::function<void()> ended_by_thread)
    : ended_by_thread_(std::move(ended_by_thread)),
      home_(std::make_shared<Home>()),
      list_(std::make_shared<const List>()) {
  const MutexLock lock(home_->mutex);
  home_->scopes = this;
}

void Scopes::close() noexcept {
  const MutexLock lock(home_->mutex);
  home_->scopes = nullptr;
}

std::shared_ptr<const Scopes::List> Scopes::list() const {
  const MutexLock lock(mutex_);
  return list_;
}

// ---- Beginning and ending ----------------------------------------------------------------------

std::uint64_t Scopes::begin(Pool& pool, const PoolFilter& filter, EndedBy ended_by) {
  const std::uint64_t number = next_++;
  if (!filter.byThread())
    return add({number, &pool, pool.token(), filter, nullptr}, ended_by) ? number : 0;
  std::vector<Own>& own = ThreadSlot<OwnScopes>::mine().list;
  const auto same = [&](const Own& of) { return of.home == home_ && of.pool == &pool; };
  if (std::any_of(own.begin(), own.end(), same)) return 0;
  own.reserve(own.size() + 1);
  {
    const MutexLock lock(mutex_);
    all_.push_back({number, &pool, ended_by});
  }
  own.push_back({home_, number, &pool});
  ++active_;
  return number;
}

bool Scopes::begin(const std::shared_ptr<Recording>& recording) {
  return add({next_++, &recording->pool(), nullptr, std::nullopt, recording}, EndedBy::kItself);
}

bool Scopes::add(Scope scope, EndedBy ended_by) {
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
  // The last that may throw.
  all_.push_back({longer->back()->number, longer->back()->pool, ended_by});
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
  forget((*it)->number);
  list_ = std::move(shorter);
  shared_ = list_->size();
  return true;
}

// Of the calling thread's.
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
  std::erase_if(all_, [&](const Active& active) { return active.number == number; });
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

bool Scopes::end(const Pool& pool) noexcept {
  if (removeOwn([&](const Own& own) { return own.pool == &pool; })) return true;
  return remove([&](const auto& scope) { return scope->pool == &pool && scope->filter; });
}

bool Scopes::end(std::uint64_t number) noexcept {
  if (removeOwn([&](const Own& own) { return own.number == number; })) return true;
  if (remove([&](const auto& scope) { return scope->number == number; })) return true;
  const MutexLock lock(mutex_);
  return std::none_of(all_.begin(), all_.end(),
                      [&](const Active& active) { return active.number == number; });
}

void Scopes::end(const Recording& recording) noexcept {
  (void)remove([&](const auto& scope) { return scope->recording.get() == &recording; });
}

int Scopes::activeOf(const Pool& pool, EndedBy ended_by) const {
  const MutexLock lock(mutex_);
  return int(std::count_if(all_.begin(), all_.end(), [&](const Active& active) {
    return active.pool == &pool && active.ended_by == ended_by;
  }));
}

// ---- Routing -----------------------------------------------------------------------------------

// The first of those captures that records the stream.
template <class Which>
Route Scopes::captureOf(Stream stream, const List& scopes, Which which) {
  for (const auto& scope : scopes) {
    if (!scope->recording || !which(*scope->recording)) continue;
    const std::uint32_t part = scope->recording->partOf(stream);
    if (part != 0) return {scope->pool, scope->recording, part, nullptr};
  }
  return {};
}

// The capture that began on the stream comes first, then the one that the device names. A stream
// that one capture includes may have joined another since.
Route Scopes::captureOf(Stream stream, const List& scopes) {
  const auto began = [&](const Recording& recording) { return recording.beganOn(stream); };
  if (Route route = captureOf(stream, scopes, began); route.recording) return route;
  const auto captures = [](const auto& scope) { return scope->recording != nullptr; };
  const auto first = std::ranges::find_if(scopes, captures);
  if (first != scopes.end() && std::any_of(std::next(first), scopes.end(), captures)) {
    const std::uint64_t id = (*first)->recording->idOf(stream);
    const auto called = [&](const Recording& recording) { return recording.isCalled(id); };
    if (Route route = captureOf(stream, scopes, called); route.recording) return route;
  }
  return captureOf(stream, scopes, [&](const Recording& of) { return !of.beganOn(stream); });
}

// A capture comes before any scope: the graph will use what its streams are given, and only its
// pool keeps that in place.
Route Scopes::route(Stream stream, Asked asked) {
  const Own* own = nullptr;
  if (const OwnScopes* const mine = ThreadSlot<OwnScopes>::find()) {
    for (const Own& one : mine->list) own = one.home == home_ ? &one : own;
  }
  const std::uint64_t inner = own ? own->number : 0;
  if (shared_.load(std::memory_order_acquire) > 0) {
    const std::shared_ptr<const List> scopes = list();
    if (Route capture = captureOf(stream, *scopes); capture.recording || asked == Asked::kCaptures)
      return capture;
    for (auto scope = scopes->rbegin(); scope != scopes->rend(); ++scope) {
      const Scope& s = **scope;
      if (s.number < inner) break;
      if (s.filter && s.filter->catches(stream)) return {s.pool, nullptr, 0, s.token};
    }
  }
  return own && asked != Asked::kCaptures ? Route{own->pool} : Route{};
}

}  // namespace cistern
