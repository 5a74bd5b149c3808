#include "allocator/engine/sharing/exports.hpp"

#include <atomic>

#include <unistd.h>

#include "allocator/engine/core.hpp"

namespace cistern {

using pages::Mapping;
using pages::PhysicalPage;

SharedPage PageDescriptors::take(Device& device, const PhysicalPage& page) {
  const MutexLock lock(mutex_);
  const auto [known, fresh] = open_.try_emplace(page.handle.raw);
  Open& open = known->second;
  if (fresh) {
    const Result<int> descriptor = device.exportPage(page.handle);
    if (!descriptor) {
      open_.erase(known);
      throw DeviceFailure(descriptor.error());
    }
    open.shared = {descriptor.value(), page.bytes(), next_++};
  }
  ++open.uses;
  return open.shared;
}

void PageDescriptors::drop(Page page) noexcept {
  const MutexLock lock(mutex_);
  const auto known = open_.find(page.raw);
  if (--known->second.uses > 0) return;
  (void)close(known->second.shared.descriptor);
  open_.erase(known);
}

/// An export, with what it holds. Its pages are the first `pages.size()` of its pinned mappings'.
struct Exports::Made : BlockExport {
  explicit Made(Exports& of) : owner(of) {}
  ~Made() {
    for (std::size_t i = 0; i < pages.size(); ++i)
      owner.descriptors_.drop(pins.mappings[i]->page->handle);
    owner.core_.pages.unpin(pins);
    owner.core_.segments.unpin(pins);
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;

  Exports& owner;
  Pins pins;
};

namespace {

/// What names a holder of pins. Those of captures count up from 1.
std::uint32_t nextHolder() {
  static std::atomic<std::uint32_t> next{UINT32_MAX};
  return next.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

// The block is the program's, so it is there after the heap's lock is given up.
std::shared_ptr<const BlockExport> Exports::make(Address address) {
  const Reports::Inspected found = core_.reports.inspect("exportBlock", address);
  const Located at = core_.locate(address);
  const Block* block = nullptr;
  {
    const MutexLock lock(at.heap->mutex());
    block = at.heap->find(*at.segment, address);
  }
  auto made = std::make_shared<Made>(*this);
  at.heap->backing().pin(*block, nextHolder(), made->pins);
  made->bytes = found.bytes;
  made->base = found.around.base;
  const auto& mappings = made->pins.mappings;
  if (!mappings.empty()) made->base = toPointer(mappings.front()->deviceAddress());
  made->offset = address - toAddress(made->base);
  made->pages.reserve(mappings.size());
  for (const Mapping* mapping : mappings)
    made->pages.push_back(descriptors_.take(core_.device, *mapping->page));
  return made;
}

}  // namespace cistern
