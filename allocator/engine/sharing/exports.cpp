// Blocks whose memory other processes use. An export pins what its block lies in, as a graph does:
// it is not given back to the device, so that what is counted as reserved is what other processes
// may reach.
#include "allocator/engine/sharing/exports.hpp"

#include <atomic>

#include <unistd.h>

#include "allocator/engine/engine.hpp"
#include "allocator/engine/reports/reports.hpp"

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

namespace {

/// An export, with what it holds. Its pages are the first `pages.size()` of its pinned mappings'.
struct Export : BlockExport {
  explicit Export(Engine& of) : engine(of) {}
  ~Export() {
    for (std::size_t i = 0; i < pages.size(); ++i)
      engine.exported.drop(pins.mappings[i]->page->handle);
    engine.unpin(pins);
  }
  Export(const Export&) = delete;
  Export& operator=(const Export&) = delete;

  Engine& engine;
  Pins pins;
};

/// What names a holder of pins. Those of captures count up from 1.
std::uint32_t nextHolder() {
  static std::atomic<std::uint32_t> next{UINT32_MAX};
  return next.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

// The block is the program's, so it is there after the heap's lock is given up.
std::shared_ptr<const BlockExport> CachingAllocator::exportBlock(void* pointer) {
  Engine& engine = *engine_;
  const Address address = toAddress(pointer);
  const Inspected found = inspect(engine, "exportBlock", address);
  const Located at = engine.locate(address);
  const Block* block = nullptr;
  {
    const MutexLock lock(at.heap->mutex());
    block = at.heap->find(*at.segment, address);
  }
  auto made = std::make_shared<Export>(engine);
  at.heap->backing().pin(*block, nextHolder(), made->pins);
  made->bytes = found.bytes;
  made->base = found.around.base;
  const auto& mappings = made->pins.mappings;
  if (!mappings.empty()) made->base = toPointer(mappings.front()->deviceAddress());
  made->offset = address - toAddress(made->base);
  made->pages.reserve(mappings.size());
  for (const Mapping* mapping : mappings)
    made->pages.push_back(engine.exported.take(engine.device, *mapping->page));
  return made;
}

}  // namespace cistern
