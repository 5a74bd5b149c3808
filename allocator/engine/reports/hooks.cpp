#include "allocator/engine/reports/hooks.hpp"

#include <new>

#include "allocator/base/thread_slots.hpp"

namespace cistern {

void Hooks::setTidier(std::function<bool(Tidying)> tidier) {
  {
    const MutexLock lock(mutex_);
    tidier_ = std::move(tidier);
  }
  while (const std::uint32_t inside = tidying_) tidying_.wait(inside);
}

bool Hooks::tidy(Tidying why) {
  const auto leave = [](std::atomic<std::uint32_t>* count) {
    --*count;
    count->notify_all();
  };
  std::unique_ptr<std::atomic<std::uint32_t>, decltype(leave)> inside;
  std::function<bool(Tidying)> tidier;
  {
    const MutexLock lock(mutex_);
    if (!tidier_) return false;
    ++tidying_;
    inside.reset(&tidying_);
    tidier = tidier_;
  }
  return tidier(why);
}

// ---- Misuse -------------------------------------------------------------------------------------

namespace {
struct LastMisuse {
  Misuse misuse;
};
}  // namespace

void MisuseTold::set(MisuseHook hook) {
  auto own = hook ? std::make_shared<const MisuseHook>(std::move(hook)) : nullptr;
  const MutexLock lock(mutex_);
  hook_.swap(own);
}

void MisuseTold::operator()(const Misuse& misuse) const noexcept {
  const bool told = MisuseScope::tell(misuse);
  std::shared_ptr<const MisuseHook> hook;
  {
    const MutexLock lock(mutex_);
    hook = hook_;
  }
  if (hook) return (*hook)(misuse);
  if (!told) defaultMisuseHook(misuse);
}

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
