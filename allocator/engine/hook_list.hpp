// Functions of the program that are called when something happens. The list is replaced whole when
// one is added, so that whoever calls them takes it without a copy: to copy a function may take
// host memory, and some are called where there need not be any.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace cistern {

template <class Signature>
class HookList {
 public:
  /// Throws std::bad_alloc, changing nothing.
  void add(std::function<Signature> hook) {
    auto longer = std::make_shared<Hooks>(*hooks_);
    longer->push_back(std::move(hook));
    hooks_ = std::move(longer);
  }
  auto begin() const { return hooks_->begin(); }
  auto end() const { return hooks_->end(); }

 private:
  using Hooks = std::vector<std::function<Signature>>;
  std::shared_ptr<const Hooks> hooks_ = std::make_shared<const Hooks>();
};

}  // namespace cistern
