#include "pools/shared_scopes.hpp"

#include <algorithm>
#include <iterator>

namespace cistern {

void SharedScopes::add(Kept scope) {
  const auto of = by_pool_.emplace(scope->pool, scope).first;
  try {
    if (const std::optional<Stream> only = scope->only()) {
      by_stream_.emplace(std::pair(only->raw, scope->number), std::move(scope));
    } else {
      addToList(std::move(scope));
    }
  } catch (...) {
    by_pool_.erase(of);
    throw;
  }
}

void SharedScopes::addToList(Kept scope) {
  auto longer = std::make_shared<List>();
  longer->reserve(list_->size() + 1);
  *longer = *list_;
  longer->push_back(std::move(scope));
  auto shorter = std::make_shared<List>();
  shorter->reserve(longer->size());
  shorter_.push_back(std::move(shorter));
  list_ = std::move(longer);
}

void SharedScopes::remove(const Kept& scope) noexcept {
  if (const std::optional<Stream> only = scope->only()) {
    by_stream_.erase({only->raw, scope->number});
  } else {
    removeFromList(scope);
  }
  by_pool_.erase(scope->pool);
}

void SharedScopes::removeFromList(const Kept& scope) noexcept {
  std::shared_ptr<List> shorter = std::move(shorter_.back());
  shorter_.pop_back();
  std::ranges::remove_copy(*list_, std::back_inserter(*shorter), scope);
  list_ = std::move(shorter);
}

SharedScopes::Kept SharedScopes::of(const Pool& pool) const noexcept {
  const auto found = by_pool_.find(&pool);
  return found != by_pool_.end() ? found->second : nullptr;
}

SharedScopes::Candidates SharedScopes::candidates(Stream stream) const noexcept {
  const auto after = by_stream_.upper_bound({stream.raw, UINT64_MAX});
  const bool any = after != by_stream_.begin() && std::prev(after)->first.first == stream.raw;
  return {list_, any ? std::prev(after)->second : nullptr};
}

}  // namespace cistern
