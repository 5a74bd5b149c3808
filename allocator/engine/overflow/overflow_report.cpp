// How much may lie in host memory, and what does.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/engine/cache/held_caches.hpp"
#include "allocator/engine/overflow/overflow.hpp"
#include "cistern/error.hpp"

namespace cistern {
namespace {

constexpr std::size_t kBlocksShown = 16;

// Blocks of the device lie there too, once memory behind them has moved.
void addBlocks(Engine& engine, Heap& heap, std::vector<OverflowBlock>& to) {
  const MutexLock still(engine.pages.mutex());
  const MutexLock lock(heap.mutex());
  const HeldCaches held_still(heap);
  forEachBlock(heap, [&](const Block& block) {
    heap.mutex().assertHeld();
    engine.pages.mutex().assertHeld();
    if (block.state() != BlockState::kAllocated || !ownership::heldByProgram(block)) return;
    if (engine.pages.hostBytesIn(block) == 0) return;
    to.push_back(
        {toPointer(deviceAddress(block)), block.bytes(), heap.pool().id(), heap.streamOf(block)});
  });
}

}  // namespace

void setOverflow(Engine& engine, std::uint64_t host_bytes) {
  if (host_bytes != 0) {
    if (!engine.device.virtualMemory().host_pages || !engine.default_pool.onPages()) {
      throw InvalidArgument(
          fmt::format("setOverflow: {} has no pages of host memory", engine.deviceName()));
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
  report.reserved = engine.overflow.reserved();
  report.most_reserved = engine.overflow_counts.most_reserved;
  report.step_bytes = engine.overflow_counts.step_bytes;
  report.handed_out = engine.overflow_counts.handed_out;
  report.would_do = engine.overflow_counts.would_do;
  for (Heap* heap : engine.heaps.all()) {
    if (report.reserved > 0 && heap->onPages() && pagesOf(*heap) != PageKind::kHost)
      addBlocks(engine, *heap, report.blocks);
  }
  std::ranges::stable_sort(report.blocks, std::greater(), &OverflowBlock::bytes);
  return report;
}

std::string OverflowReport::text() const {
  if (host_bytes == 0 && most_reserved == 0) return "overflow: off\n";
  std::string text =
      fmt::format("overflow: {} of host memory reserved, of {} that may be; {} at most so far\n",
                  formatBytes(reserved), formatBytes(host_bytes), formatBytes(most_reserved));
  if (handed_out == 0) return text + "  the device had room for all blocks\n";
  text += fmt::format("  {} handed out in blocks there; a limit of {} would have done without\n",
                      formatBytes(handed_out), formatBytes(would_do));
  if (step_bytes > 0)
    text += fmt::format("  about {} went over the bus in the last step\n", formatBytes(step_bytes));
  const std::size_t shown = std::min(blocks.size(), kBlocksShown);
  for (std::size_t i = 0; i < shown; ++i) {
    text += fmt::format("  {}  {} of pool {{{}, {}}}\n", blocks[i].address,
                        formatBytes(blocks[i].bytes), blocks[i].pool.uuid, blocks[i].pool.uid);
  }
  if (blocks.size() > shown) text += fmt::format("  and {} more\n", blocks.size() - shown);
  return text;
}

}  // namespace cistern
