// Which requests a scope catches.
#pragma once

#include <functional>
#include <utility>

#include "allocator/base/types.hpp"
#include "allocator/engine/reports/hook_scope.hpp"

namespace cistern {

class PoolFilter {
 public:
  /// Requests of the thread that begins the scope, on any stream; no other thread's.
  static PoolFilter thisThread() { return PoolFilter{}; }
  /// Requests of any thread on streams that `catches` says yes to. It is asked without a lock held,
  /// by any thread, while the scope is active; what it asks for itself no filter catches. What it
  /// throws leaves the verb, which changed nothing.
  static PoolFilter streams(std::function<bool(Stream)> catches) {
    return PoolFilter{std::move(catches)};
  }
  /// Requests of any thread on that stream.
  static PoolFilter stream(Stream only) {
    return streams([only](Stream stream) { return stream == only; });
  }

  bool byThread() const { return catches_ == nullptr; }
  bool catches(Stream stream) const {
    if (HookScope::inside(&kAny)) return false;
    const HookScope inside(&kAny);
    return catches_(stream);
  }

 private:
  PoolFilter() = default;
  explicit PoolFilter(std::function<bool(Stream)> catches) : catches_(std::move(catches)) {}
  std::function<bool(Stream)> catches_;
  static constexpr char kAny = 0;  ///< stands for all filters
};

}  // namespace cistern
