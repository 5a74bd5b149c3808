#include "allocator/reports/exit_reports.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "allocator/base/bytes.hpp"
#include "allocator/base/printable.hpp"
#include "allocator/base/process.hpp"
#include "allocator/history/engine_history.hpp"
#include "allocator/history/host_stack.hpp"
#include "allocator/history/label_tree.hpp"
#include "allocator/reports/accounting.hpp"
#include "allocator/reports/snapshot.hpp"

namespace cistern {
namespace {

/// Groups of blocks that are shown, and frames of each.
constexpr std::size_t kGroups = 10, kFrames = 4;

/// Blocks that were never freed, of one size, or of one stack and label.
struct Group {
  std::uint64_t blocks = 0, bytes = 0;
};
struct Key {
  std::uint64_t bytes = 0;  ///< 0: any
  std::uint32_t stack = 0, label = 0;
  auto operator<=>(const Key&) const = default;
};
using Groups = std::map<Key, Group>;

void add(Groups& groups, const Key& key, std::uint64_t bytes) {
  Group& group = groups[key];
  group.blocks += 1;
  group.bytes += bytes;
}

// A block that lived before the history began has no stack: it goes by its size.
Groups groupsOf(Engine& engine, bool recorded) {
  Groups groups;
  if (!recorded) {
    for (const SnapshotSegment& segment : snapshotOf(engine).segments) {
      for (const SnapshotBlock& block : segment.blocks) {
        const bool held = block.use == BlockUse::kAllocated || block.use == BlockUse::kAsleep;
        if (held) add(groups, {block.requested}, block.requested);
      }
    }
    return groups;
  }
  for (const LivingBlock& block : EngineHistory::of(engine).atItsEnd().living) {
    const std::uint64_t size = block.stack == 0 && block.label == 0 ? block.bytes : 0;
    if (!block.pending) add(groups, {size, block.stack, block.label}, block.bytes);
  }
  return groups;
}

std::string framesOf(const HistoryNames& names, std::uint32_t stack) {
  std::string text;
  std::size_t shown = 0;
  while (stack != 0 && shown < kFrames) {
    const StackTree::Node node = names.stacks.node(stack);
    const StackFrame frame = names.frameOf(node.value);
    stack = node.parent;
    if (shown == 0 && isOwnFunction(frame)) continue;
    ++shown;
    text += fmt::format("        {} ({}{})\n", frame.function, frame.file,
                        frame.line != 0 ? fmt::format(":{}", frame.line) : "");
  }
  return text;
}

std::string textOf(const Key& key, const Group& group, const HistoryNames* names) {
  std::string text = fmt::format("    {} in {} block{}", formatBytes(group.bytes), group.blocks,
                                 group.blocks == 1 ? "" : "s");
  if (key.bytes != 0 && group.blocks > 1) text += fmt::format(" of {}", formatBytes(key.bytes));
  if (key.label != 0) text += fmt::format(", {}", printable(Labels::pathOf(key.label)));
  text += '\n';
  return names == nullptr ? text : text + framesOf(*names, key.stack);
}

std::string leaksOf(Engine& engine) {
  const std::shared_ptr<HistoryNames> names = EngineHistory::of(engine).names();
  const Groups groups = groupsOf(engine, names != nullptr);
  if (groups.empty()) return "  every block was freed\n";
  std::vector<std::pair<Key, Group>> largest(groups.begin(), groups.end());
  std::ranges::stable_sort(largest, std::greater(),
                           [](const auto& entry) { return entry.second.bytes; });
  std::string text = "  never freed:\n";
  for (std::size_t i = 0; i < std::min(largest.size(), kGroups); ++i)
    text += textOf(largest[i].first, largest[i].second, names.get());
  if (largest.size() > kGroups)
    text += fmt::format("    and {} more kinds, each with fewer bytes\n", largest.size() - kGroups);
  return text;
}

/// The allocators that have not been reported.
class Registry {
 public:
  Registry() {
    (void)std::atexit([] { processWide<Registry>().printAll(); });
  }
  void add(Engine& engine) {
    const MutexLock lock(mutex);
    engines_.push_back(&engine);
  }
  bool take(Engine& engine) noexcept {
    const MutexLock lock(mutex);
    return std::erase(engines_, &engine) != 0;
  }
  static void print(Engine& engine) noexcept try {
    if (!engine.made.isHere()) return;
    const std::string text = printableLines(exitReport(engine));
    std::fwrite(text.data(), 1, text.size(), stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cistern: no statistics: %s\n", error.what());
  }

  Mutex mutex{LockRank::kExitReports};

 private:
  void printAll() noexcept {
    std::vector<Engine*> engines;
    {
      const MutexLock lock(mutex);
      engines.swap(engines_);
    }
    for (Engine* const engine : engines) print(*engine);
  }

  std::vector<Engine*> engines_ CISTERN_GUARDED_BY(mutex);
};

bool isAskedFor() noexcept {
  const char* const value = std::getenv("CISTERN_STATS");
  return value != nullptr && value[0] != '\0' && std::string_view(value) != "0";
}

}  // namespace

std::string exitReport(Engine& engine) {
  const MemoryStats stats = statsOf(engine);
  const StatValue &blocks = stats[Stat::kAllocation], &asked = stats[Stat::kRequestedBytes],
                  &allocated = stats[Stat::kAllocatedBytes],
                  &reserved = stats[Stat::kReservedBytes];
  std::string text = fmt::format("cistern: {}, process {}\n", engine.deviceName(), ::getpid());
  text += fmt::format("  {} allocations, {} frees, {} requests that failed\n", blocks.allocated,
                      blocks.freed, stats.num_ooms);
  const auto line = [&](const char* what, const StatValue& value) {
    text += fmt::format("  {:<10} {:>12} now, {:>12} at the peak\n", what,
                        formatBytes(std::uint64_t(value.current)),
                        formatBytes(std::uint64_t(value.peak)));
  };
  line("asked for", asked);
  line("allocated", allocated);
  line("reserved", reserved);
  text += fmt::format(
      "  {} calls of the device for memory, {} to give it back; {} pages moved; {:.1f} ms in all\n",
      stats.num_device_alloc, stats.num_device_free, stats.pages.recycled,
      double(stats.memory_call_ns) / 1e6);
  return text + leaksOf(engine);
}

void exit_reports::add(Engine& engine) {
  if (isAskedFor()) processWide<Registry>().add(engine);
}

void exit_reports::remove(Engine& engine) noexcept {
  if (isAskedFor() && processWide<Registry>().take(engine)) Registry::print(engine);
}

}  // namespace cistern
