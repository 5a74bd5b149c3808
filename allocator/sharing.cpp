// Memory that several processes use: exports, and imports. An export holds the memory that its
// block lies in, as a graph does. That memory is not given back to the device, so what other
// processes may reach counts as reserved. A page has one descriptor, however many of its blocks are
// exported.
#include <list>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "allocator/base/bytes.hpp"
#include "allocator/engine/backing/imports.hpp"
#include "allocator/engine/engine.hpp"
#include "allocator/engine/errors/engine_errors.hpp"
#include "cistern/allocator.hpp"

namespace cistern {
namespace {

using Exported = std::shared_ptr<const SharedPage>;

/// An export, with what it holds.
struct Export : BlockExport {
  ExportHold hold;
  std::vector<Exported> descriptors;  ///< of `pages`
};

void closeAndDelete(const SharedPage* page) {
  if (page->descriptor >= 0) (void)::close(page->descriptor);
  delete page;
}

// Its last holder closes the descriptor. Throws DeviceFailure, std::bad_alloc.
Exported exported(Engine& engine, Page page, std::uint64_t bytes,
                  std::weak_ptr<const SharedPage>& known) CISTERN_REQUIRES(engine.pages.mutex()) {
  static std::atomic<std::uint64_t> next{1};
  if (const Exported there = known.lock()) return there;
  const std::shared_ptr<SharedPage> made(new SharedPage, closeAndDelete);
  const Result<int> descriptor = engine.device.exportPage(page);
  if (!descriptor) throw DeviceFailure(descriptor.error());
  *made = {descriptor.value(), bytes, next++};
  if (engine.device.virtualMemory().fabric)
    made->fabric = engine.device.exportToFabric(page).orThrow();
  known = made;
  return made;
}

// The page that the block's segment is, if it has one of its own.
std::optional<Page> pageOfSegment(const Block& block) {
  const std::shared_ptr<SegmentSource> source = heapOf(block).pool().source();
  return source ? source->pageOf(segmentOf(block).device_base) : std::nullopt;
}

// ---- Pages of other processes, mapped here -----------------------------------------------------

/// A range, with who gives it back.
struct Imported {
  explicit Imported(std::shared_ptr<Imports> of) : imports(std::move(of)) {}
  ~Imported() { imports->giveBack(range); }
  Imported(const Imported&) = delete;
  Imported& operator=(const Imported&) = delete;

  const std::shared_ptr<Imports> imports;
  std::list<ImportedRange> range;  ///< one at most, so that it can be handed on without a failure
};

// The mapping holds the page from here on.
void map(Device& device, const SharedPage& page, Address at, ImportedRange& range) {
  range.mapped.reserve(range.mapped.size() + 1);
  const bool elsewhere = page.descriptor < 0 && page.fabric;
  const Page handle =
      (elsewhere ? device.importFromFabric(*page.fabric) : device.importPage(page.descriptor))
          .orThrow();
  const Status done = device.map(at, page.bytes, handle);
  (void)device.releasePage(handle);
  done.orThrow();
  range.mapped.push_back(page.bytes);
}

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

const SharedPage& BlockExport::onlyPage() const {
  if (pages.size() == 1) return pages.front();
  throw InvalidArgument(fmt::format(
      "onlyPage: the block of {} lies in {} pages, and each has a handle of its own: allocate it "
      "from a pool with MemPoolOptions::one_handle",
      formatBytes(bytes), pages.size()));
}

std::shared_ptr<const BlockExport> CachingAllocator::exportBlock(void* pointer) {
  Engine& engine = engine_->here("exportBlock");
  const Address address = toAddress(pointer);
  const Block& block = blockAt(engine, "exportBlock", address);
  if (engine.locationOf(block) == Location::kHost) {
    throw PoolError(fmt::format(
        "exportBlock: the block at {:#x} lies in host memory, which has no handle for other "
        "processes: allocate it in a pool of device memory",
        address));
  }
  const std::shared_ptr<Export> made(new Export, [&engine](Export* of) {
    if (!engine.made.isHere()) return;  // as FixedHold's (holding.cpp)
    engine.letGo(of->hold);
    delete of;
  });
  engine.hold(block, made->hold);
  made->bytes = block.bytes();
  made->base = toPointer(segmentOf(block).device_base);
  const auto& mappings = made->hold.mappings;
  const std::optional<Page> whole = mappings.empty() ? pageOfSegment(block) : std::nullopt;
  const MutexLock lock(engine.pages.mutex());
  if (!mappings.empty()) made->base = toPointer(mappings.front()->deviceAddress());
  made->offset = address - toAddress(made->base);
  const auto name = [&](Page page, std::uint64_t bytes, std::weak_ptr<const SharedPage>& known) {
    engine.pages.mutex().assertHeld();
    made->descriptors.push_back(exported(engine, page, bytes, known));
    made->pages.push_back(*made->descriptors.back());
  };
  for (const pages::Mapping* mapping : mappings) {
    pages::PhysicalPage& page = *mapping->page;
    name(page.handle, page.bytes(), page.exported);
  }
  if (whole) {
    DeviceSegment& segment = deviceSegmentOf(segmentOf(block));
    name(*whole, roundUp(segment.bytes, device().virtualMemory().granularity), segment.exported);
  }
  return made;
}

std::shared_ptr<void> CachingAllocator::openImport(const std::vector<SharedPage>& pages) {
  engine_->made.requireHere("openImport");
  const std::uint64_t bytes = sizeOf(device(), pages);
  engine_->imports->retry();
  const auto imported = std::make_shared<Imported>(engine_->imports);
  std::list<ImportedRange> one(1);
  ImportedRange& range = one.front();
  range.bytes = bytes;
  range.base = device().reserve(bytes).orThrow();
  imported->range.splice(imported->range.end(), one);
  Address at = range.base;
  for (const SharedPage& page : pages) {
    map(device(), page, at, range);
    at += page.bytes;
  }
  device().setAccess(range.base, bytes).orThrow();
  engine_->imports->noteOpened(range);
  engine_->memory_hooks.deliver();
  return {imported, toPointer(range.base)};
}

}  // namespace cistern
