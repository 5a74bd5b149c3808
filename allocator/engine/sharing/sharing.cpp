// Memory that several processes use: exports, and imports. An export pins what its block lies in,
// as a graph does: it is not given back to the device, so that what is counted as reserved is what
// other processes may reach. A page has one descriptor, however many of its blocks are exported.
#include <fmt/format.h>
#include <unistd.h>

#include "allocator/base/process.hpp"
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
  if (engine.device.virtualMemory().fabric)
    made->fabric = engine.device.exportToFabric(page.handle).orThrow();
  page.exported = made;
  return made;
}

// ---- Pages of other processes, mapped here -----------------------------------------------------

/// Reserved addresses and what is mapped there, from the first on.
class Imported {
 public:
  Imported(Device& device, std::uint64_t bytes)
      : device_(device), bytes_(bytes), base_(device.reserve(bytes).orThrow()) {}
  // Whose work uses it is not known. In a child of fork, and at exit, the driver is not to be asked
  // any more.
  ~Imported() {
    if (!made_.isHere() || !driverMayBeCalled()) return;
    const RelaxedCaptureMode relaxed(device_);
    if (!mapped_.empty() && !device_.synchronizeDevice()) return;
    Address at = base_;
    for (const std::uint64_t bytes : mapped_) {
      if (!device_.unmap(at, bytes)) return;
      at += bytes;
    }
    (void)device_.freeReservation(base_, bytes_);
  }
  Imported(const Imported&) = delete;
  Imported& operator=(const Imported&) = delete;

  Address base() const { return base_; }
  // The mapping holds the page from here on.
  void add(const SharedPage& page) {
    mapped_.reserve(mapped_.size() + 1);
    const bool elsewhere = page.descriptor < 0 && page.fabric;
    const Page handle =
        (elsewhere ? device_.importFromFabric(*page.fabric) : device_.importPage(page.descriptor))
            .orThrow();
    const Status mapped = device_.map(base_ + mapped_bytes_, page.bytes, handle);
    (void)device_.releasePage(handle);
    mapped.orThrow();
    mapped_.push_back(page.bytes);
    mapped_bytes_ += page.bytes;
  }
  void allowAccess() { device_.setAccess(base_, bytes_).orThrow(); }

 private:
  Device& device_;
  const Birthplace made_;
  const std::uint64_t bytes_;
  const Address base_;
  std::uint64_t mapped_bytes_ = 0;
  std::vector<std::uint64_t> mapped_;  ///< sizes
};

std::uint64_t sizeOf(Device& device, const std::vector<SharedPage>& pages) {
  const std::uint64_t unit = device.virtualMemory().granularity;
  std::uint64_t bytes = 0;
  for (const SharedPage& page : pages) {
    if (unit == 0 || page.bytes == 0 || page.bytes % unit != 0) {
      throw InvalidArgument(
          fmt::format("openImport: a page of {} bytes, which is not a positive multiple of {}",
                      page.bytes, unit));
    }
    if (page.bytes > ~bytes)
      throw InvalidArgument("openImport: the pages are of more bytes than there are addresses");
    bytes += page.bytes;
  }
  if (bytes == 0) throw InvalidArgument("openImport: no page is named");
  return bytes;
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

std::shared_ptr<void> CachingAllocator::openImport(const std::vector<SharedPage>& pages) {
  auto imported = std::make_shared<Imported>(device(), sizeOf(device(), pages));
  for (const SharedPage& page : pages) imported->add(page);
  imported->allowAccess();
  void* const base = toPointer(imported->base());
  return {std::move(imported), base};
}

}  // namespace cistern
