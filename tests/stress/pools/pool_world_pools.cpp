// The pools of a round, and the hooks that call back into the allocator.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "allocator/engine/paths/slow_path.hpp"
#include "tests/stress/pools/pool_world.hpp"

namespace cistern::storm {
namespace {

// Segments of the program's own: the same device's, one by one; it says no, or throws, at times.
class OwnSource final : public SegmentSource {
 public:
  OwnSource(Device& device, bool throws, std::uint64_t seed)
      : device_(device), throws_(throws), random_(seed) {}

  Result<Address> allocate(std::size_t bytes, Stream) override {
    {
      const std::lock_guard lock(mutex_);
      if (throws_ && random_.oneIn(10)) throw std::runtime_error("a source threw");
      if (random_.oneIn(10)) {
        return DeviceError{Call::kMalloc, ErrorKind::kOutOfMemory, 2, "", "the source has no more"};
      }
    }
    const RelaxedCaptureMode relaxed(device_);
    return insist([&] { return device_.malloc(bytes); });
  }
  Status free(Address address, std::size_t) override {
    const RelaxedCaptureMode relaxed(device_);
    return insist([&] { return device_.free(address); });
  }

 private:
  Device& device_;
  const bool throws_;
  std::mutex mutex_;
  Random random_;
};

}  // namespace

PoolRef World::makePool(MempoolId_t id) {
  auto pool = PoolRef(new PoolModel, [this](PoolModel* over) {
    (void)insist([&] { return device.destroyEvent(over->chain.last); });
    delete over;
  });
  pool->number = pool_numbers_++;
  pool->id = id;
  pool->chain.last = insist([&] { return device.createEvent(); }).orThrow();
  return pool;
}

MemPoolOptions World::poolOptions(Random& random) {
  MemPoolOptions options;
  options.use_on_oom = random.oneIn(4);
  options.no_split = random.oneIn(6);
  options.is_user_created = !random.oneIn(4);
  if (random.oneIn(5)) {
    options.allocator = std::make_shared<OwnSource>(quiet, config.sources_throw, random.next());
  }
  const bool pages = config.device.virtual_memory && config.options.backing == Backing::kPages;
  const bool plain = !options.use_on_oom && !options.no_split && !options.allocator;
  if (pages && plain && random.oneIn(2)) options.location = Location::kHost;
  return options;
}

PoolRef World::openPool(Random& random) {
  const std::lock_guard lock(pools_mutex_);
  return random.oneOf(open_);
}

PoolRef World::anyPool(Random& random) {
  const std::lock_guard lock(pools_mutex_);
  if (retired_.empty() || !random.oneIn(3)) return random.oneOf(open_);
  return random.oneOf(retired_);
}

std::vector<PoolRef> World::allPools() {
  const std::lock_guard lock(pools_mutex_);
  std::vector<PoolRef> all = open_;
  all.insert(all.end(), retired_.begin(), retired_.end());
  return all;
}

PoolRef World::renewPool(std::size_t place, Random& random) {
  const MemPoolOptions options = poolOptions(random);
  PoolRef made = makePool({});
  made->user = std::make_unique<MemPool>(*pools, options);
  made->used = true;
  made->id = made->user->id();
  made->lent = options.use_on_oom;
  made->location = options.location;
  counts.pools += 1;
  note("  pool {} is {}{}{}{}{}", made->number, poolName(made->id),
       options.use_on_oom ? " lends" : "", options.no_split ? " no_split" : "",
       options.allocator ? " source" : "", made->location == Location::kHost ? " host" : "");
  const std::lock_guard lock(pools_mutex_);
  std::swap(open_[place], made);
  if (made) retired_.push_back(made);
  return made;
}

PoolRef World::adoptPool(MempoolId_t id) {
  PoolRef pool = makePool(id);
  const std::lock_guard lock(pools_mutex_);
  retired_.push_back(pool);
  return pool;
}

// Others may have a reference to it still; then it is over for them too.
void World::sweep() {
  std::vector<PoolRef> over;
  const std::lock_guard lock(pools_mutex_);
  const auto is_over = [](const PoolRef& pool) {
    return pool.use_count() == 1 && !pool->used && pool->blocks == 0 && pool->chain.graphs == 0;
  };
  const auto first = std::partition(retired_.begin(), retired_.end(),
                                    [&](const PoolRef& pool) { return !is_over(pool); });
  over.assign(std::make_move_iterator(first), std::make_move_iterator(retired_.end()));
  retired_.erase(first, retired_.end());
}

// ---- Hooks. They are called without a lock held, so they may call every verb. -----------------

void World::attachHooks() {
  allocator.setMisuseHook([](const Misuse& misuse) { violation(misuse.text()); });
  if (!config.busy_hooks) return;
  allocator.attachPoolReleasedObserver([this](MempoolId_t) { onRelease(); });
  reclaim_ = allocator.registerReclaimCallback(onShortage());
  allocator.attachOutOfMemoryObserver([this](const OutOfMemoryReport&) {
    (void)allocator.cacheInfo();
    (void)allocator.memoryStats();
  });
  memory_hook_ =
      allocator.attachMemoryHook([this](const MemoryNotice& notice) { onMemory(notice); });
}

// Where memory is about to go, nothing is allocated meanwhile.
void World::onMemory(const MemoryNotice& notice) {
  mustBe(notice.number == ++notices_, "a hook has missed a notice for memory");
  if (notice.change == MemoryChange::kMapped || notice.number % 4 != 0) return;
  try {
    void* const block = allocator.allocate(notice.bytes / 2, Stream{});
    const Address at = toAddress(block);
    mustBe(at + notice.bytes / 2 <= notice.address || at >= notice.address + notice.bytes,
           "memory that is about to go was handed out");
    allocator.free(block);
    if (notice.number % 16 == 0) allocator.emptyCache();
  } catch (const std::exception&) {  // no memory, a fault of the device, or a source's own
  }
}

std::function<bool(const MemoryShortage&)> World::onShortage() {
  return [this](const MemoryShortage& shortage) {
    counts.callbacks += 1;
    mustBe(shortage.requested > 0 && shortage.missing > 0 && shortage.attempt > 0,
           "a callback is told of a shortage of nothing");
    return freeSomething();
  };
}

void World::replaceCallback() {
  if (!config.busy_hooks) return;
  const HookId next = allocator.registerReclaimCallback(onShortage());
  HookId last;
  {
    const std::lock_guard lock(hooks_mutex_);
    last = std::exchange(reclaim_, next);
  }
  allocator.detach(last);
}

bool World::freeSomething() {
  const PoolRef& pool = open_.front();  // never replaced
  const Use use = Use::shared(pool->users);
  if (!use) return false;
  HeldRef held;
  {
    const std::lock_guard lock(hooks_mutex_);
    if (!hooks_random_.oneIn(4)) return false;
    held = unshelve(*pool, hooks_random_);
  }
  if (!held) return false;
  note("  a callback frees:");
  giveBack(std::move(held));
  return true;
}

void World::onRelease() {
  thread_local bool within = false;
  if (within) return;
  within = true;
  std::uint64_t dice = 0, bytes = 0;
  {
    const std::lock_guard lock(hooks_mutex_);
    dice = hooks_random_.below(8);
    bytes = hooks_random_.size();
  }
  note("  an observer is told of a pool's end");
  if (dice == 0) allocator.emptyCache();
  if (dice == 1) (void)allocator.memoryStats();
  const PoolRef& pool = open_.front();
  const Use use = Use::shared(pool->users);
  if (use && dice >= 5 && !over_) {
    HeldRef held = take(pool, placeOf(0), bytes, [&] {
      return slow_path::allocate(allocator.engine(), bytes, Stream{},
                                 allocator.engine().default_pool);
    });
    if (held) shelve(std::move(held));
  }
  within = false;
}

}  // namespace cistern::storm
