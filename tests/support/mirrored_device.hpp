// A device in front of another that knows which addresses have memory, and a hook that keeps a
// mirror of that from what it hears (CachingAllocator::attachMemoryHook), as a cache of
// registrations does.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <ostream>

#include "cistern/report.hpp"
#include "tests/support/forwarding_device.hpp"

namespace cistern::test {

class MirroredDevice final : public ForwardingDevice<MirroredDevice> {
 public:
  using ForwardingDevice::ForwardingDevice;
  /// Ranges that have memory: their ends by their beginnings. Neighbours are one.
  using Memory = std::map<Address, Address>;

  /// The hook. Once at a time, in order: otherwise wrong() counts.
  void hear(const MemoryNotice& notice) {
    if (hears_.exchange(true)) ++wrong_;
    {
      const std::lock_guard lock(mutex_);
      wrong_ += notice.number == ++numbers_ ? 0 : 1;
      const Address end = notice.address + notice.bytes;
      const bool mapped = notice.change == MemoryChange::kMapped;
      if (mapped == overlaps(heard_, notice.address, end)) ++wrong_;
      if (!mapped && !overlaps(there_, notice.address, end)) ++wrong_;  // told too late
      mapped ? void(heard_[notice.address] = end) : void(heard_.erase(notice.address));
    }
    hears_ = false;
  }
  MemoryHook hook() {
    return [this](const MemoryNotice& notice) { hear(notice); };
  }

  /// What the hook knows, and what the device has.
  Memory heard() const { return joined(heard_); }
  Memory there() const { return joined(there_); }
  bool isThere(Address address) const {
    const std::lock_guard lock(mutex_);
    return overlaps(there_, address, address + 1);
  }
  std::uint64_t numbers() const {
    const std::lock_guard lock(mutex_);
    return numbers_;
  }
  /// Calls for memory that the hook still counted on, and notices that contradict others.
  int wrong() const { return wrong_; }

 private:
  Result<void> doMap(Address address, std::size_t bytes, Page page) override {
    return noteTaken(behind_.map(address, bytes, page), address, bytes);
  }
  Result<void> doUnmap(Address address, std::size_t bytes) override {
    noteGiven(address, address + bytes);
    return noteRefused(behind_.unmap(address, bytes), address, bytes);
  }
  Result<Address> doMalloc(std::size_t bytes) override {
    Result<Address> at = behind_.malloc(bytes);
    if (at) {
      const std::lock_guard lock(mutex_);
      there_[at.value()] = at.value() + bytes;
    }
    return at;
  }
  Result<void> doFree(Address address) override {
    std::uint64_t bytes = 0;
    {
      const std::lock_guard lock(mutex_);
      bytes = there_.at(address) - address;
    }
    noteGiven(address, address + bytes);
    return noteRefused(behind_.free(address), address, bytes);
  }

  Result<void> noteTaken(Result<void> done, Address address, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (done) there_[address] = address + bytes;
    return done;
  }
  void noteGiven(Address address, Address end) {
    const std::lock_guard lock(mutex_);
    if (overlaps(heard_, address, end)) ++wrong_;
    there_.erase(address);
  }
  Result<void> noteRefused(Result<void> done, Address address, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (!done) there_[address] = address + bytes;
    return done;
  }
  static bool overlaps(const Memory& memory, Address from, Address to) {
    const auto next = memory.lower_bound(to);
    return next != memory.begin() && std::prev(next)->second > from;
  }
  Memory joined(const Memory& memory) const {
    const std::lock_guard lock(mutex_);
    Memory all;
    for (const auto& [begin, end] : memory) {
      const bool follows = !all.empty() && all.rbegin()->second == begin;
      follows ? void(all.rbegin()->second = end) : void(all[begin] = end);
    }
    return all;
  }

  mutable std::mutex mutex_;
  Memory heard_, there_;
  std::uint64_t numbers_ = 0;
  std::atomic<bool> hears_{false};
  std::atomic<int> wrong_{0};
};

}  // namespace cistern::test
