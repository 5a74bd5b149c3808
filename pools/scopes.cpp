#include "pools/scopes.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "allocator/base/steps.hpp"
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
    all_.emplace(number, Active{&pool, ended_by});
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
  const std::uint64_t number = scope.number;
  const Pool* const pool = scope.pool;
  if (!shared_of_.try_emplace(pool, number).second) return false;
  try {
    const bool captures = scope.recording != nullptr;
    all_.emplace(number, Active{pool, ended_by, captures,
                                captures ? std::nullopt : scope.filter->onlyStream()});
    keep(std::make_shared<const Scope>(std::move(scope)));
  } catch (...) {
    all_.erase(number);
    shared_of_.erase(pool);
    throw;
  }
  ++shared_;
  ++active_;
  return true;
}

// Throws std::bad_alloc, changing nothing.
void Scopes::keep(Kept scope) {
  const Active& active = all_.at(scope->number);
  if (active.only) {
    by_stream_.emplace(std::pair(active.only->raw, scope->number), scope);
    return;
  }
  auto longer = std::make_shared<List>();
  longer->reserve(list_->size() + 1);
  *longer = *list_;
  longer->push_back(std::move(scope));
  auto shorter = std::make_shared<List>();
  shorter->reserve(longer->size());
  shorter_.push_back(std::move(shorter));
  list_ = std::move(longer);
}

// False for a number of no scope, or of a thread's own scope.
bool Scopes::remove(std::uint64_t number) noexcept {
  const auto it = all_.find(number);
  if (it == all_.end()) return false;
  const auto shared = shared_of_.find(it->second.pool);
  if (shared == shared_of_.end() || shared->second != number) return false;
  if (const std::optional<Stream> only = it->second.only) {
    by_stream_.erase({only->raw, number});
  } else {
    removeFromList(number);
  }
  shared_of_.erase(shared);
  forget(number);
  --shared_;
  return true;
}

void Scopes::removeFromList(std::uint64_t number) noexcept {
  std::shared_ptr<List> shorter = std::move(shorter_.back());
  shorter_.pop_back();
  std::remove_copy_if(list_->begin(), list_->end(), std::back_inserter(*shorter),
                      [number](const Kept& scope) { return scope->number == number; });
  list_ = std::move(shorter);
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

bool Scopes::end(const Pool& pool) noexcept {
  if (removeOwn([&](const Own& own) { return own.pool == &pool; })) return true;
  const MutexLock lock(mutex_);
  const auto shared = shared_of_.find(&pool);
  return shared != shared_of_.end() && !all_.at(shared->second).captures && remove(shared->second);
}

bool Scopes::end(std::uint64_t number) noexcept {
  if (removeOwn([&](const Own& own) { return own.number == number; })) return true;
  const MutexLock lock(mutex_);
  return remove(number) || !all_.contains(number);
}

void Scopes::end(const Recording& recording) noexcept {
  const MutexLock lock(mutex_);
  const auto of = [&](const Kept& scope) { return scope->recording.get() == &recording; };
  const auto it = std::ranges::find_if(*list_, of);
  if (it != list_->end()) (void)remove((*it)->number);
}

int Scopes::activeOf(const Pool& pool, EndedBy ended_by) const {
  const MutexLock lock(mutex_);
  return int(std::count_if(all_.begin(), all_.end(), [&](const auto& active) {
    return active.second.pool == &pool && active.second.ended_by == ended_by;
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

Scopes::Candidates Scopes::candidates(Stream stream) const {
  const MutexLock lock(mutex_);
  const auto after = by_stream_.upper_bound({stream.raw, UINT64_MAX});
  const bool any = after != by_stream_.begin() && std::prev(after)->first.first == stream.raw;
  return {list_, any ? std::prev(after)->second : nullptr};
}

// A capture comes before any scope. The graph will use the memory that its streams get, and only
// its pool keeps that in place.
Route Scopes::route(Stream stream, Asked asked) {
  const Own* own = nullptr;
  if (const OwnScopes* const mine = ThreadSlot<OwnScopes>::find()) {
    const auto here = [this](const Own& one) { return one.home == home_; };
    const auto last = std::find_if(mine->list.rbegin(), mine->list.rend(), here);
    if (last != mine->list.rend()) own = &*last;
  }
  std::uint64_t inner = own ? own->number : 0;
  if (shared_.load(std::memory_order_acquire) > 0) {
    const auto [scopes, of_stream] = candidates(stream);
    if (Route capture = captureOf(stream, *scopes); capture.recording || asked == Asked::kCaptures)
      return capture;
    const bool named = of_stream && of_stream->number > inner && of_stream->filter->catches(stream);
    if (named) inner = of_stream->number;
    for (auto scope = scopes->rbegin(); scope != scopes->rend(); ++scope) {
      const Scope& s = **scope;
      if (s.number < inner) break;
      noteSteps(1);
      if (s.filter && s.filter->catches(stream)) return {s.pool, nullptr, 0, s.token};
    }
    if (named) return {of_stream->pool, nullptr, 0, of_stream->token};
  }
  return own && asked != Asked::kCaptures ? Route{own->pool} : Route{};
}

}  // namespace cistern
