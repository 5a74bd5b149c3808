#include "allocator/engine/reports/hooks.hpp"

#include <new>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/thread_slots.hpp"
#include "allocator/engine/reports/misuse_scope.hpp"
#include "cistern/error.hpp"

namespace cistern {
namespace {

/// Counts the calling thread for as long as it lives.
class Counted {
 public:
  explicit Counted(std::atomic<std::uint32_t>& count) : count_(count) { ++count_; }
  ~Counted() {
    --count_;
    count_.notify_all();
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<std::uint32_t>& count_;
};

struct LastMisuse {
  Misuse misuse;
};

}  // namespace

template <class Signature>
void Hooks::add(const char* verb, List<Signature>& list, std::function<Signature> hook) {
  if (!hook) throw InvalidArgument(fmt::format("{}: the function is empty", verb));
  const MutexLock lock(mutex_);
  auto longer = list ? std::make_shared<std::vector<std::function<Signature>>>(*list)
                     : std::make_shared<std::vector<std::function<Signature>>>();
  longer->push_back(std::move(hook));
  list = std::move(longer);
}

void Hooks::addReclaim(std::function<bool()> callback) {
  add("registerReclaimCallback", reclaim_, std::move(callback));
}

void Hooks::addOutOfMemory(std::function<void(const OutOfMemoryReport&)> observer) {
  add("attachOutOfMemoryObserver", out_of_memory_, std::move(observer));
}

void Hooks::addPoolReleased(std::function<void(MempoolId_t)> observer) {
  add("attachPoolReleasedObserver", pool_released_, std::move(observer));
}

void Hooks::setMisuse(MisuseHook hook) {
  auto own = hook ? std::make_shared<const MisuseHook>(std::move(hook)) : nullptr;
  const MutexLock lock(mutex_);
  misuse_.swap(own);
}

void Hooks::setTidier(std::function<bool(Tidying)> tidier) {
  {
    const MutexLock lock(mutex_);
    tidier_ = std::move(tidier);
  }
  while (const std::uint32_t inside = tidying_) tidying_.wait(inside);
}

bool Hooks::reclaim() {
  const auto callbacks = current(reclaim_);
  if (callbacks == nullptr || HookScope::inside(&reclaim_)) return false;
  const HookScope inside(&reclaim_);
  bool freed = false;
  for (const auto& callback : *callbacks) freed |= callback();
  return freed;
}

void Hooks::outOfMemory(const OutOfMemoryReport& report) {
  const auto observers = current(out_of_memory_);
  if (observers == nullptr || HookScope::inside(&out_of_memory_)) return;
  const HookScope inside(&out_of_memory_);
  for (const auto& observer : *observers) observer(report);
}

void Hooks::poolReleased(MempoolId_t id) noexcept {
  const auto observers = current(pool_released_);
  if (observers == nullptr) return;
  for (const auto& observer : *observers) observer(id);
}

void Hooks::misuse(const Misuse& misuse) const noexcept {
  const bool told = MisuseScope::tell(misuse);
  if (const auto hook = current(misuse_)) return (*hook)(misuse);
  if (!told) defaultMisuseHook(misuse);
}

bool Hooks::tidy(Tidying why) {
  std::optional<Counted> inside;
  std::function<bool(Tidying)> tidier;
  {
    const MutexLock lock(mutex_);
    if (!tidier_) return false;
    inside.emplace(tidying_);
    tidier = tidier_;
  }
  return tidier(why);
}

// ---- Who waits to be told -----------------------------------------------------------------------

const Misuse& MisuseScope::last() { return ThreadSlot<LastMisuse>::mine().misuse; }

// Null is never misused, so that it can stand for a pointer that was.
bool MisuseScope::tell(const Misuse& misuse) noexcept {
  if (awaited_ == nullptr || toAddress(awaited_) != misuse.pointer) return false;
  try {
    ThreadSlot<LastMisuse>::mine().misuse = misuse;
  } catch (const std::bad_alloc&) {
    return false;  // it is printed, then
  }
  awaited_ = nullptr;
  return true;
}

}  // namespace cistern
