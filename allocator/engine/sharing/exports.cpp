// Blocks whose memory other processes use. An export pins what its block lies in, as a graph does:
// it is not given back to the device, so that what is counted as reserved is what other processes
// may reach. A page has one descriptor, however many of its blocks are exported.
#include <unistd.h>

#include "allocator/engine/engine.hpp"
#include "allocator/engine/reports/reports.hpp"
#include "cistern/allocator.hpp"

namespace cistern {
namespace {

using Exported = std::shared_ptr<const SharedPage>;

/// An export, with what it holds.
struct Export : BlockExport {
  Pins pins;
  std::vector<Exported> descriptors;  ///< of `pages`
};

void closeAndDelete(const SharedPage* page) {
  if (page->descriptor >= 0) (void)::close(page->descriptor);
  delete page;
}

// Its last holder closes the descriptor. Throws DeviceFailure, std::bad_alloc.
Exported exported(Engine& engine, pages::PhysicalPage& page)
    CISTERN_REQUIRES(engine.pages.mutex()) {
  static std::atomic<std::uint64_t> next{1};
  if (const Exported known = page.exported.lock()) return known;
  const std::shared_ptr<SharedPage> made(new SharedPage, closeAndDelete);
  const Result<int> descriptor = engine.device.exportPage(page.handle);
  if (!descriptor) throw DeviceFailure(descriptor.error());
  *made = {descriptor.value(), page.bytes(), next++};
  page.exported = made;
  return made;
}

}  // namespace

std::shared_ptr<const BlockExport> CachingAllocator::exportBlock(void* pointer) {
  Engine& engine = *engine_;
  const Address address = toAddress(pointer);
  const Block& block = blockAt(engine, "exportBlock", address);
  const std::shared_ptr<Export> made(new Export, [&engine](Export* of) {
    engine.unpin(of->pins);
    delete of;
  });
  heapOf(block).backing().pin(block, nextHolder(), made->pins);
  made->bytes = block.bytes();
  made->base = toPointer(segmentOf(block).device_base);
  const auto& mappings = made->pins.mappings;
  if (!mappings.empty()) made->base = toPointer(mappings.front()->deviceAddress());
  made->offset = address - toAddress(made->base);
  const MutexLock lock(engine.pages.mutex());
  for (const pages::Mapping* mapping : mappings) {
    made->descriptors.push_back(exported(engine, *mapping->page));
    made->pages.push_back(*made->descriptors.back());
  }
  return made;
}

}  // namespace cistern
