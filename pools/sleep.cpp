// The verbs of Pools that put pools to sleep, and wake them.
#include <exception>

#include <fmt/format.h>

#include "allocator/engine/errors/engine_errors.hpp"
#include "allocator/sleep/block_flags.hpp"
#include "cistern/pool.hpp"
#include "pools/pool_registry.hpp"

namespace cistern {
namespace {

// Hooks see both ends, however the verb goes: all of them, if one has refused it too. What is told
// is ready before: nothing of it fails later.
template <class Verb>
auto between(PoolRegistry& at, const std::vector<MempoolId_t>& ids, SleepMoment before,
             SleepMoment after, SleepMoment failed, Verb verb) {
  const SleepNotice notices[] = {{before, ids}, {after, ids}, {failed, ids}};
  auto& hooks = at.engine.hooks.sleep;
  auto report = [&] {
    try {
      (void)hooks(notices[0]);
      return verb();
    } catch (...) {
      (void)hooks.callEach(notices[2]);
      throw;
    }
  }();
  if (const std::exception_ptr thrown = hooks.callEach(notices[1])) std::rethrow_exception(thrown);
  return report;
}

SleepReport sleepAfter(PoolRegistry& at, const std::vector<MempoolId_t>& ids, const Stream* after,
                       Contents contents) {
  return between(at, ids, SleepMoment::kBeforeSleep, SleepMoment::kAfterSleep,
                 SleepMoment::kAfterWake, [&] { return at.sleeping.sleep(ids, after, contents); });
}

}  // namespace

SleepReport Pools::sleep(const std::vector<MempoolId_t>& ids, Contents contents) {
  return sleepAfter(registry_->here("sleep"), ids, nullptr, contents);
}

SleepReport Pools::sleep(const std::vector<MempoolId_t>& ids, Stream after, Contents contents) {
  return sleepAfter(registry_->here("sleep"), ids, &after, contents);
}

WakeReport Pools::wake(const std::vector<MempoolId_t>& ids, HostMemory memory) {
  PoolRegistry& at = registry_->here("wake");
  return between(at, ids, SleepMoment::kBeforeWake, SleepMoment::kAfterWake,
                 SleepMoment::kAfterSleep, [&] { return at.sleeping.wake(ids, memory); });
}

bool Pools::isAsleep(MempoolId_t id) const {
  constexpr const char* verb = "isAsleep";
  if (id == MempoolId_t{}) return false;
  return registry_->here(verb).users.visit(verb, id).pool.asleep;
}

void Pools::setContents(void* pointer, Contents contents) {
  constexpr const char* verb = "setContents";
  Engine& engine = registry_->here(verb).engine;
  const Address address = toAddress(pointer);
  (void)blockAt(engine, verb, address);
  const auto [segment, heap] = engine.locate(address);
  if (heap->pool().isDefault()) {
    throw InvalidArgument(fmt::format(
        "setContents: the block at {:#x} is the default pool's, which never sleeps", address));
  }
  const MutexLock lock(heap->mutex());
  if (Block* block = heap->find(*segment, address)) block_flags::setContents(*block, contents);
}

bool Pools::copySaved(void* to, const void* from, std::size_t bytes) const {
  return registry_->here("copySaved").sleeping.copySaved(to, toAddress(from), bytes);
}

void Pools::trimHostMemory() { registry_->here("trimHostMemory").sleeping.giveHostMemoryBack(); }

HookId Pools::attachSleepHook(std::function<void(const SleepNotice&)> hook) {
  return registry_->here("attachSleepHook").engine.hooks.sleep.add(std::move(hook));
}

}  // namespace cistern
