// How much may lie in host memory, what does, and how much of the device's a program needs.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/engine/engine.hpp"
#include "cistern/allocator.hpp"

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

OverflowReport CachingAllocator::overflow() const {
  Engine& engine = engine_->here("overflow");
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
  for (Heap* heap : engine.heaps.with(MemoryKind::kOverflow))
    addBlocks(engine, *heap, report.blocks);
  std::ranges::stable_sort(report.blocks, std::greater(), &OverflowBlock::on_host);
  return report;
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
