// Contexts that come and go. First the time of the driver's own calls, for the summary.
#include "interop/preload/served/contexts.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include <fmt/format.h>
#include <pthread.h>

#include "allocator/base/printable.hpp"
#include "allocator/engine/engine.hpp"
#include "allocator/engine/exchange/exchange.hpp"
#include "interop/preload/driver/driver.hpp"
#include "interop/preload/process/preload_settings.hpp"
#include "interop/preload/record/ledger.hpp"
#include "interop/preload/record/run_history.hpp"
#include "interop/preload/served/host_overflow.hpp"

namespace cistern::preload::GPU_NAMESPACE {

/// Times a few cudaMallocs and cudaFrees of the driver's, once a process, where a record is kept.
/// Pre: a context is current, and nothing is captured.
void measurePrices(const Functions& driver) noexcept;

// The least of a few: a late measurement in a busy program waits for the program's work.
static std::uint64_t priceOf(const Functions& driver, std::uint64_t bytes) noexcept {
  std::uint64_t least = 0;
  for (int round = 0; round < 3; ++round) {
    Address address = 0;
    const std::uint64_t begin = nanosecondsNow();
    if (driver.malloc(&address, bytes) != kSuccess) return least;
    (void)driver.free(address);
    const std::uint64_t took = nanosecondsNow() - begin;
    least = least == 0 ? took : std::min(least, took);
  }
  return least;
}

void measurePrices(const Functions& driver) noexcept {
  if (record().process.pid == 0) return;
  for (DriverPrice& price : record().prices) {
    if (price.nanoseconds == 0) price.nanoseconds = priceOf(driver, price.bytes);
  }
}

// With it, an allocator without host pages is an error; a program is to go on.
static Options withoutOverflow(Options options) {
  options.overflow = 0;
  return options;
}

Serving::Serving(const Functions& driver, ContextOrder& order, Captures& captures,
                 const std::atomic<Reuse>& reuse, const Options& options)
    : device(driver, order, captures, reuse),
      cooling(driver, order, captures, reuse),
      allocator(device, withoutOverflow(options)),
      pool(allocator.engine()) {
  allocator.engine().hooks.tidy.add([this](Tidying why) {
    bool gave = false;
    if (why != Tidying::kMiss && why != Tidying::kEmptyCache) return gave;
    (void)device.inContext([&] {
      if (why == Tidying::kEmptyCache)
        cooling.settleWaiting(allocator);
      else
        gave = cooling.settle(allocator);
      return kSuccess;
    });
    return gave;
  });
  ++allocator.engine().hooks.untidy;  // for good: cooling memory is looked for at each miss
  recordForRun(allocator);
  if (options.overflow != 0) letOverflow(*this, options.overflow);
}

bool Serving::giveBack(const Captures& captures) {
  const InHand in_hand(allocator.engine());
  (void)device.inContext([&] {
    cooling.settleWaiting(allocator);
    if (!captures.maybe()) (void)device.synchronizeDevice();
    allocator.emptyCache();
    return kSuccess;
  });
  return in_hand.alone();
}

Contexts& detail::makeContexts() noexcept {
  static Contexts& all = *new Contexts;
  detail::all_contexts = &all;
  return all;
}

// ---- A child of fork ----------------------------------------------------------------------------

namespace {

// One that has contexts of its parent can do nothing with them; one that has none is a process like
// any other.
void inChild() noexcept {
  Contexts* const there = detail::all_contexts;
  if (there != nullptr && there->any()) there->leaveToParent();
}

// Before main, and before any other thread.
[[gnu::constructor]] void start() noexcept { (void)pthread_atfork(nullptr, nullptr, inChild); }

}  // namespace

// ---- Finding one --------------------------------------------------------------------------------

Context* Contexts::current() {
  ContextHandle now = kNoContext;
  if (driver()->currentContext(&now) != kSuccess || now == kNoContext) return nullptr;
  const std::uint64_t changes = changes_.load(std::memory_order_acquire);
  if (now != seen_.context || seen_.changes != changes) seen_ = {now, meet(now), changes};
  return seen_.found;
}

Context* Contexts::currentServed() {
  Context* const context = current();
  if (context != nullptr && context->serving() == nullptr) makeServing(*context);
  return context != nullptr && context->serving() != nullptr ? context : nullptr;
}

bool Contexts::has(Context& context, StreamHandle stream) {
  if (!several_) return true;
  if (stream == kLegacyStream || stream == kPerThreadStream) return current() == &context;
  return context.order().knows(stream);
}

Context* Contexts::meet(ContextHandle context) {
  met(context);
  const MutexLock lock(mutex_);
  std::unique_ptr<Context>& there = contexts_[context];
  if (there == nullptr) there = std::make_unique<Context>(*driver(), captures_, context);
  return there.get();
}

// No other device can serve memory that the program uses on this one.
static void requireOwnBackend() {
  const std::string_view named = backendAtStart();
  if (named.empty() || named == "auto" || named == kBackend) return;
  throw Error(fmt::format("CISTERN_BACKEND is {}, and this program is on {}: must be auto or {}",
                          printable(named), kBackend, kBackend));
}

// An allocator that cannot be made is tried only once: the driver then serves its requests.
void Contexts::makeServing(Context& context) {
  const MutexLock lock(mutex_);
  if (context.serving() != nullptr || context.refused_) return;
  try {
    requireOwnBackend();
    auto* const made =
        new Serving(*driver(), context.order(), captures_, reuse_, Options::fromEnvironment());
    for (int peer : context.peers_) (void)made->device.admit(peer);
    add(record().contexts);
    noteVendor(kBackend);
    if (!captures_.maybe()) measurePrices(*driver());
    std::snprintf(record().device.data(), record().device.size(), "%s",
                  made->device.name().c_str());
    context.serving_ = made;
    work_is_unseen_ |= !driver()->workIsKnown();
    if (work_is_unseen_) ContextOrder::workIsUnseen();
    if (reuse_ == Reuse::kInOrder && context.order().context() == first_ && !work_is_unseen_)
      context.order().follow();
  } catch (const std::exception& error) {
    context.refused_ = true;
    std::fprintf(stderr, "cistern: the driver serves this context itself: %s\n", error.what());
  }
}

// ---- Captures -----------------------------------------------------------------------------------

bool Contexts::capturing() {
  const MutexLock lock(mutex_);
  const MutexLock beginning(captures_.beginning());
  for (const auto& [handle, context] : contexts_) {
    if (context->order().capturing()) return true;
  }
  captures_.forget();
  return false;
}

// ---- Coming and going ---------------------------------------------------------------------------

// With one context, a cut in it orders all that can reach its memory. Another context may reach it
// too (peers, copies between devices), and no cut is for both.
void Contexts::met(ContextHandle context) {
  met_any_ = true;
  const MutexLock lock(mutex_);
  if (first_ == kNoContext) {
    first_ = context;
    if (asksForCompletion() || !active()) reuse_ = Reuse::kComplete;
  }
  if (first_ != context) several_ = true;
  if (first_ == context || reuse_ == Reuse::kComplete) return;
  reuse_ = Reuse::kComplete;
  ContextOrder::followNone();
  for (const auto& [handle, known] : contexts_) {
    if (Serving* const serving = known->serving()) (void)serving->device.synchronizeDevice();
  }
}

void Contexts::beforeEnd(ContextHandle context) { drop(context, false); }
void Contexts::afterEnd(ContextHandle context) { drop(context, true); }

void Contexts::drop(ContextHandle context, bool gone) {
  std::unique_ptr<Context> ended;
  {
    const MutexLock lock(mutex_);
    if (first_ == context && reuse_ == Reuse::kInOrder)
      first_ = kNoContext;  // the next one is alone
    const auto found = contexts_.find(context);
    if (found == contexts_.end()) return;
    ended = std::move(found->second);
    contexts_.erase(found);
    ++changes_;
  }
  { const MutexLock nobody_is_at_it(giving_back_); }
  const std::uint64_t bytes = blocks_.drop(*ended);
  takeFrom(record().requested, bytes);
  Serving* const serving = ended->serving();
  if (serving == nullptr) return;
  if (gone) serving->device.contextIsGone();
  (void)serving->device.synchronizeDevice();
  sharing_.drop(*ended);
  delete serving;
}

std::optional<Blocks::Around> Contexts::around(Address address) {
  const std::optional<Blocks::Around> own = blocks_.around(address);
  return own ? own : sharing_.around(address);
}

bool Contexts::cover(Address address) {
  if (sharing_.around(address)) return true;
  const MutexLock lock(mutex_);
  for (const auto& [handle, context] : contexts_) {
    Serving* const serving = context->serving();
    if (serving != nullptr && serving->allocator.owns(toPointer(address))) return true;
  }
  return false;
}

std::vector<Serving*> Contexts::servingsOn(int device) {
  std::vector<Serving*> all;
  const MutexLock lock(mutex_);
  for (const auto& [handle, context] : contexts_) {
    Serving* const serving = context->serving();
    if (serving != nullptr && serving->device.ordinal() == device) all.push_back(serving);
  }
  return all;
}

// Several contexts of one device have the same memory to share.
Gave Contexts::giveBack(int device, const Serving* but) {
  const MutexLock giving(giving_back_);
  bool some = false, alone = true;
  for (Serving* const serving : servingsOn(device)) {
    if (serving == but) continue;
    const std::uint64_t before = serving->device.reserved();
    alone &= serving->giveBack(captures_);
    some |= serving->device.reserved() < before;
  }
  if (some) return Gave::kSome;
  return alone ? Gave::kNone : Gave::kOthersMay;
}

std::uint64_t Contexts::keptOn(int device) {
  std::uint64_t kept = 0;
  const MutexLock lock(mutex_);
  for (const auto& [handle, context] : contexts_) {
    Serving* const serving = context->serving();
    if (serving == nullptr || serving->device.ordinal() != device) continue;
    const std::uint64_t reserved = serving->device.reserved();
    const std::uint64_t held = blocks_.bytesOf(*context), on_host = heldOnHost(blocks_, *serving);
    kept += reserved + on_host > held ? reserved + on_host - held : 0;
  }
  return kept;
}

// ---- The default pool ---------------------------------------------------------------------------

PoolBytes Contexts::poolOn(int device) {
  PoolBytes all;
  const MutexLock giving(giving_back_);
  for (Serving* const serving : servingsOn(device)) {
    const PoolBytes one = serving->pool.bytesNow();
    all.used += one.used;
    all.used_high += one.used_high;
    all.reserved += one.reserved;
    all.reserved_high += one.reserved_high;
  }
  return all;
}

void Contexts::resetPoolHigh(int device, void (PoolUse::*reset)() noexcept) {
  const MutexLock giving(giving_back_);
  for (Serving* const serving : servingsOn(device)) (serving->pool.*reset)();
}

void Contexts::trimPool(int device, std::uint64_t bytes) {
  const MutexLock giving(giving_back_);
  for (Serving* const serving : servingsOn(device)) {
    (void)serving->device.inContext([&] {
      serving->cooling.settle(serving->allocator);
      serving->pool.trimTo(bytes);
      return kSuccess;
    });
    const std::uint64_t left = serving->pool.bytesNow().reserved;
    bytes -= std::min(bytes, left);
  }
}

// ---- Peers and work -----------------------------------------------------------------------------

void Contexts::admit(ContextHandle owner, int device) {
  Context* const context = meet(owner);
  if (context->serving() != nullptr) (void)context->serving()->device.admit(device);
  context->peers_.push_back(device);
}

void Contexts::workIsUnseen() {
  const MutexLock lock(mutex_);
  work_is_unseen_ = true;
  ContextOrder::workIsUnseen();
  if (ContextOrder* const order = ContextOrder::followed()) order->unfollow();
}

// Its locks may be held by threads that are not in the child, so it is not touched any more.
void Contexts::leaveToParent() {
  that_serve_ = nullptr;
  left_to_parent_ = true;
  ContextOrder::followNone();
}

}  // namespace cistern::preload::GPU_NAMESPACE
