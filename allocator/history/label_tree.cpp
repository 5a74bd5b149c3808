#include "allocator/history/label_tree.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "allocator/base/mutex.hpp"
#include "allocator/base/process.hpp"

namespace cistern {

struct Labels::Tree {
  Mutex mutex{LockRank::kLabels};
  NumberedTree<std::string> labels CISTERN_GUARDED_BY(mutex);
};

std::uint32_t Labels::current() noexcept {
  return innermost_ == nullptr ? 0 : numberOf(innermost_);
}

std::uint32_t Labels::numberOf(LabelScope* scope) noexcept {
  if (scope == nullptr) return 0;
  if (scope->number_ != 0) return scope->number_;
  const std::uint32_t parent = numberOf(scope->outer_);
  try {
    Tree& all = processWide<Tree>();
    const Label label{parent, std::string(scope->name_.substr(0, kMostBytes))};
    const MutexLock lock(all.mutex);
    const std::uint32_t number = all.labels.child(label, kMost);
    return scope->number_ = number != 0 ? number : parent;
  } catch (const std::bad_alloc&) {
    return parent;
  }
}

Labels::Label Labels::label(std::uint32_t number) {
  Tree& all = processWide<Tree>();
  const MutexLock lock(all.mutex);
  return all.labels[number];
}

std::uint32_t Labels::parentOf(std::uint32_t number) noexcept {
  Tree& all = processWide<Tree>();
  const MutexLock lock(all.mutex);
  return all.labels[number].parent;
}

// The outermost labels of a longer path are left out.
std::string Labels::pathOf(std::uint32_t number) {
  std::vector<std::string> names;
  std::size_t bytes = 0;
  while (number != 0 && bytes < kMostPathBytes) {
    Label one = label(number);
    bytes += one.value.size();
    names.push_back(std::move(one.value));
    number = one.parent;
  }
  std::ranges::reverse(names);
  return fmt::format("{}{}", number != 0 ? "… / " : "", fmt::join(names, " / "));
}

LabelScope::LabelScope(std::string_view name) noexcept : outer_(Labels::innermost_), name_(name) {
  Labels::innermost_ = this;
}
LabelScope::~LabelScope() { Labels::innermost_ = outer_; }

// ---- Labels without a scope ---------------------------------------------------------------------

namespace {

struct PushedLabel {
  PushedLabel(std::string_view given, PushedLabel* around)
      : outer(around), name(given), scope(name) {}
  PushedLabel* const outer;
  const std::string name;
  const LabelScope scope;
};

// Without a destructor: a thread that ends inside a label leaves its record.
constinit thread_local PushedLabel* pushed = nullptr;

}  // namespace

void pushLabel(std::string_view name) { pushed = new PushedLabel(name, pushed); }

void popLabel() noexcept {
  PushedLabel* const last = pushed;
  if (last == nullptr) return;
  pushed = last->outer;
  delete last;
}

std::string labelPath() { return Labels::pathOf(Labels::current()); }

StackGatherer::~StackGatherer() = default;

}  // namespace cistern
