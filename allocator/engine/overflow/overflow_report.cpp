// How much may lie in host memory, what does, and how much of the device's a program needs.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/engine/overflow/overflow.hpp"
#include "cistern/allocator.hpp"
#include "cistern/error.hpp"

namespace cistern {
namespace {

constexpr std::size_t kBlocksShown = 16;

void addBlocks(Engine& engine, Heap& heap, std::vector<OverflowBlock>& to) {
  const MutexLock still(engine.pages.mutex());
  const MutexLock lock(heap.mutex());
  forEachBlock(heap, [&](const Block& block) {
    heap.mutex().assertHeld();
    engine.pages.mutex().assertHeld();
    if (block.state() != BlockState::kAllocated) return;
    const std::uint64_t on_host = engine.pages.hostBytesIn(block);
    if (on_host == 0) return;
    to.push_back({toPointer(deviceAddress(block)), block.bytes(), on_host, heap.pool().id(),
                  heap.streamOf(block)});
  });
}

}  // namespace

void setOverflow(Engine& engine, std::uint64_t host_bytes) {
  if (host_bytes != 0) {
    if (!engine.default_pool.onPages())
      throw InvalidArgument("setOverflow: memory comes in segments, and overflow needs pages");
    if (!engine.device.virtualMemory().host_pages) {
      throw InvalidArgument(
          fmt::format("setOverflow: {} has no pages of host memory", engine.deviceName()));
    }
    if (host_bytes < kPageUnit) {
      throw InvalidArgument(fmt::format("setOverflow: {} are less than a page of {}",
                                        formatBytes(host_bytes), formatBytes(kPageUnit)));
    }
    const std::uint64_t left = engine.device.hostPageBytesLeft();
    const std::uint64_t held = engine.overflow.reserved();
    if (host_bytes > held && host_bytes - held > left) {
      throw InvalidArgument(fmt::format("setOverflow: {} are more than the {} that the host admits",
                                        formatBytes(host_bytes), formatBytes(held + left)));
    }
  }
  engine.overflow.set(host_bytes);
}

OverflowReport overflowOf(Engine& engine) {
  OverflowReport report;
  report.host_bytes = engine.overflow.limit();
  {
    // A page that the device is being asked for counts as reserved.
    const MutexLock still(engine.pages.mutex());
    report.reserved = engine.overflow.reserved();
    report.most_reserved = engine.overflow_counts.most_reserved;
  }
  report.handed_out = engine.overflow_counts.handed_out;
  report.would_do = engine.overflow_counts.would_do;
  for (Heap* heap : engine.heaps.with(PageKind::kOverflow)) addBlocks(engine, *heap, report.blocks);
  std::ranges::stable_sort(report.blocks, std::greater(), &OverflowBlock::on_host);
  return report;
}

// Free blocks that threads' caches keep count as in use there.
std::uint64_t CachingAllocator::takePeak() {
  Engine& engine = engine_->here("takePeak");
  const std::uint64_t peak = engine.totals.takePeak();
  std::uint64_t elsewhere = 0;
  for (Heap* heap : engine.heaps.all()) {
    if (pagesOf(*heap) != PageKind::kHost && !heap->pool().asleep) continue;
    const MutexLock lock(heap->mutex());
    elsewhere += heap->busyBytes();
  }
  return peak - std::min(peak, elsewhere);
}

std::string OverflowReport::text() const {
  if (host_bytes == 0 && most_reserved == 0) return "overflow: off\n";
  const std::string bound =
      host_bytes > 0 ? fmt::format("of {} that may be", formatBytes(host_bytes)) : "off by now";
  std::string text = fmt::format("overflow: {} of host memory reserved, {}; {} at most so far\n",
                                 formatBytes(reserved), bound, formatBytes(most_reserved));
  if (handed_out == 0) return text + "  the device had room for all blocks\n";
  text += fmt::format(
      "  {} handed out there in all so far; with a limit of about {} there would have been none\n",
      formatBytes(handed_out), formatBytes(would_do));
  const std::size_t shown = std::min(blocks.size(), kBlocksShown);
  for (std::size_t i = 0; i < shown; ++i) {
    const OverflowBlock& block = blocks[i];
    const std::string whole =
        block.on_host < block.bytes ? " (of a block of " + formatBytes(block.bytes) + ")" : "";
    text += fmt::format("  {}  {}{} of pool {{{}, {}}}\n", block.address,
                        formatBytes(block.on_host), whole, block.pool.uuid, block.pool.uid);
  }
  if (blocks.size() > shown) text += fmt::format("  and {} more\n", blocks.size() - shown);
  return text;
}

}  // namespace cistern
