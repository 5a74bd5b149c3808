#include "allocator/hooks/hooked_memory.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

namespace cistern {

// ---- Memory -------------------------------------------------------------------------------------

MemoryHooks::Range& MemoryHooks::addRange(const MemoryNotice& of) {
  const auto [it, added] = ranges_.try_emplace(of.address);
  Range& range = it->second;
  if (!added) return range;
  try {
    range.spare.resize(2);
  } catch (...) {
    ranges_.erase(it);
    throw;
  }
  range.notice = of;
  return range;
}

void MemoryHooks::expect(const MemoryNotice& of) {
  const MutexLock lock(mutex_);
  if (on()) (void)addRange(of);
}

void MemoryHooks::addPresent(const MemoryNotice& of) {
  const MutexLock lock(mutex_);
  Range& range = addRange(of);
  if (range.state != State::kComing) return;  // it has come since the first hook was there
  range.state = State::kMapped;
  range.told = true;
}

void MemoryHooks::queue(Range& range, MemoryChange change) noexcept {
  range.spare.front() = {&range, change};
  queue_.splice(queue_.end(), range.spare, range.spare.begin());
  due_.store(true, std::memory_order_relaxed);
}

void MemoryHooks::came(Address address) noexcept {
  const MutexLock lock(mutex_);
  const auto it = ranges_.find(address);
  if (it == ranges_.end() || it->second.state != State::kComing) return;
  it->second.state = State::kMapped;
  queue(it->second, MemoryChange::kMapped);
}

void MemoryHooks::gone(Address address) noexcept { gone(takeOut(address)); }

bool MemoryHooks::withdraw(Address address, Owner& owner, void* range) noexcept {
  const MutexLock lock(mutex_);
  const auto it = ranges_.find(address);
  if (it == ranges_.end() || it->second.state == State::kComing) return false;
  Range& record = it->second;
  if (std::exchange(record.state, State::kWithdrawn) == State::kWithdrawn) return true;
  record.owner = &owner;
  record.range = range;
  queue(record, MemoryChange::kUnmapping);
  return true;
}

void MemoryHooks::stays(Address address) noexcept { stays(takeOut(address)); }

MemoryHooks::Ranges::node_type MemoryHooks::takeOut(Address address) noexcept {
  const MutexLock lock(mutex_);
  return ranges_.extract(address);
}

void MemoryHooks::gone(Ranges::node_type record) noexcept {
  const bool heard = !record.empty() && record.mapped().state == State::kWithdrawn;
  if (heard) returned_.fetch_add(1, std::memory_order_relaxed);
}

void MemoryHooks::stays(Ranges::node_type record) noexcept {
  if (record.empty()) return;
  const MutexLock lock(mutex_);
  const auto back = ranges_.insert(std::move(record));
  if (!back.inserted) return;
  back.position->second.state = State::kMapped;
  queue(back.position->second, MemoryChange::kMapped);
}

// ---- Hooks --------------------------------------------------------------------------------------

namespace {

/// A hook whose notices have numbers of their own, so that one which comes later hears of no gap.
class Numbered {
 public:
  explicit Numbered(MemoryHook hook) : hook_(std::move(hook)) {}
  void tell(MemoryNotice notice) {
    notice.number = ++last_;
    hook_(notice);
  }

 private:
  const MemoryHook hook_;
  std::uint64_t last_ = 0;
};

}  // namespace

HookId MemoryHooks::attachNumbered(MemoryHook hook) {
  if (!hook) return hooks_.add(nullptr);  // which refuses it
  const auto numbered = std::make_shared<Numbered>(std::move(hook));
  for (MemoryNotice& notice : toldRanges()) {
    const HookScope scope(&hooks_);
    notice.was_there = true;
    numbered->tell(notice);
  }
  return hooks_.add([numbered](const MemoryNotice& notice) { numbered->tell(notice); });
}

std::vector<MemoryNotice> MemoryHooks::toldRanges() const {
  const MutexLock lock(mutex_);
  std::vector<MemoryNotice> told;
  for (const auto& [address, range] : ranges_) {
    if (range.told) told.push_back(range.notice);
  }
  return told;
}

bool MemoryHooks::detach(HookId hook) {
  if (!hooks_.remove(hook)) return false;
  const Turn turn(*this);  // after the last hook there are no records
  return true;
}

// ---- Turns --------------------------------------------------------------------------------------

bool MemoryHooks::takeTurn(Wait wait) noexcept {
  for (;;) {
    std::uint32_t turns = 0;
    {
      const MutexLock lock(mutex_);
      due_.store(true, std::memory_order_relaxed);
      if (!std::exchange(taken_, true)) return true;
      turns = turns_;
    }
    if (wait == Wait::kNo) return false;
    const WaitForTurn wait_for = wait_for_turn_;
    wait_for == nullptr ? turns_.wait(turns) : wait_for(turns_, turns);
  }
}

// False, and it goes on, if more has come.
bool MemoryHooks::endTurn() noexcept {
  const MutexLock lock(mutex_);
  if (!queue_.empty()) return false;
  if (ended_ || !hooks_.any()) {
    on_.store(false, std::memory_order_relaxed);
    log_.setHooks(false);
    ranges_.clear();
  }
  taken_ = false;
  due_.store(false, std::memory_order_relaxed);
  ++turns_;
  turns_.notify_all();
  return true;
}

void MemoryHooks::deliverAll() noexcept {
  do {
    while (deliverNext()) {
    }
  } while (!endTurn());
}

bool MemoryHooks::deliverNext() noexcept {
  MemoryNotice notice;
  Owner* owner = nullptr;
  void* range = nullptr;
  bool news = false;
  {
    const MutexLock lock(mutex_);
    if (queue_.empty()) return false;
    Range& of = *queue_.front().range;
    notice = of.notice;
    notice.change = queue_.front().change;
    const bool mapped = notice.change == MemoryChange::kMapped;
    news = std::exchange(of.told, mapped) != mapped;
    if (!mapped) {
      owner = of.owner;
      range = of.range;
    }
    of.spare.splice(of.spare.end(), queue_, queue_.begin());
  }
  if (news) tell(notice);
  if (owner == nullptr) return true;
  const Sections::Entry entry = in_hand_->enter();
  owner->finish(range);
  in_hand_->leave(entry);
  return true;
}

void MemoryHooks::tell(const MemoryNotice& notice) noexcept {
  if (ended_) return;
  const std::exception_ptr thrown = hooks_.callEach(notice);
  if (!thrown) return;
  const char* const change = notice.change == MemoryChange::kMapped ? "was mapped" : "is unmapped";
  const auto say = [&](const char* what) {
    std::fprintf(stderr,
                 "cistern: a hook for memory has thrown (%s): the range of %llu bytes at %#llx %s "
                 "all the same\n",
                 what, static_cast<unsigned long long>(notice.bytes),
                 static_cast<unsigned long long>(notice.address), change);
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    say(error.what());
  } catch (...) {
    say("no std::exception");
  }
}

void MemoryHooks::deliverDue(Wait wait) noexcept {
  if (!inside() && takeTurn(wait)) deliverAll();
}

// ---- The end ------------------------------------------------------------------------------------

void MemoryHooks::end() noexcept {
  if (!on()) return;
  (void)takeTurn(Wait::kYes);
  for (Address from = 0;;) {
    if (deliverNext()) {
      from = 0;
    } else if (!tellNextEnd(from)) {
      break;
    }
  }
  ended_ = true;
  deliverAll();
}

// The next range that the hooks know of, from there on.
bool MemoryHooks::tellNextEnd(Address& from) noexcept {
  MemoryNotice notice;
  {
    const MutexLock lock(mutex_);
    const auto it = std::find_if(ranges_.lower_bound(from), ranges_.end(),
                                 [](const auto& of) { return of.second.told; });
    if (it == ranges_.end()) return false;
    it->second.told = false;
    notice = it->second.notice;
  }
  from = notice.address + notice.bytes;
  notice.change = MemoryChange::kUnmapping;
  tell(notice);
  return true;
}

}  // namespace cistern
