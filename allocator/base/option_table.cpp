#include "allocator/base/option_table.hpp"

#include <fmt/format.h>

#include "allocator/base/text.hpp"

namespace cistern {
namespace {

constexpr std::uint64_t kMostBytes = 1024 * kTiB;

constexpr OptionRow kTable[] = {
    {"backing", "",
     BackingRule{&Options::backing,
                 {{{"pages", Backing::kPages}, {"segments", Backing::kSegments}}}},
     "What memory stands behind the addresses of blocks. `pages`: physical memory that the "
     "allocator maps where a request needs it, and moves there from free blocks. `segments`: one "
     "device malloc each; also what a device without virtual memory management gets."},

    {"page_size", "",
     BytesRule{&Options::page_size, 2 * kMiB, 16 * kGiB, 2 * kMiB,
               Special<std::uint64_t>{"auto", 0}},
     "The size of the pages behind large requests (over 1 MiB); small ones always share pages of "
     "2 MiB. Calls to the device cost by the page, but a page with one block in it cannot move. "
     "`auto` weighs the two by what is reserved, what is left and what calls have cost."},

    {"recycle", "",
     RecycleRule{
         &Options::recycle,
         {{{"budget", Recycle::kBudget}, {"eager", Recycle::kEager}, {"off", Recycle::kOff}}}},
     "Whether wholly free pages move to where they are needed, before the device is asked for "
     "more. `budget`: in pages as large as `recycle_budget` makes them. `eager`: in the smallest "
     "pages, whatever the calls cost. `off`: never."},

    {"recycle_budget", "",
     FractionRule{&Options::recycle_budget, false, Special<double>{"none", 0.0}},
     "The fraction of wall time that calls to the device may take beyond those of growing by "
     "pages of 10 MiB. Above it, new pages become larger."},

    {"background_thread", "", SwitchRule{&Options::background_thread},
     "Whether a thread of the allocator's own removes the mappings that moved pages left behind, "
     "and gives back what emptyCache found still in use. Without it the next miss outside "
     "captures does so."},

    {"max_split_size", "max_split_size_mb",
     BytesRule{&Options::max_split_size, 20 * kMiB, kMostBytes, 1,
               Special<std::uint64_t>{"unlimited", kUnlimited}},
     "Free blocks of this size or more are never split and serve only requests of this size or "
     "more, so that small requests do not crumble them."},

    {"max_non_split_rounding", "max_non_split_rounding_mb",
     BytesRule{&Options::max_non_split_rounding, 2 * kMiB, kMostBytes},
     "How much larger than the request a block may be that `max_split_size` keeps whole."},

    {"roundup_power2_divisions", "roundup_power2_divisions",
     DivisionsRule{&Options::roundup_power2_divisions},
     "Rounds requests up to one of this many equal steps between two powers of two, so that sizes "
     "which differ a little share blocks: with 4, 9 MiB become 10 MiB. In a list each key is a "
     "size in MiB, whose number holds up to twice that size; the first key's also below, that of "
     "`>` above the last key. A power of two between keys that is not named is not rounded, nor "
     "are sizes whose number is 0 or 1. The key 65536 means 32768."},

    {"garbage_collection_threshold", "garbage_collection_threshold",
     FractionRule{&Options::garbage_collection_threshold, false, Special<double>{"off", 0.0}},
     "Once more than this fraction of the limit is reserved, the wholly free segments that have "
     "been unused longest go back before the device is asked for more."},

    {"expandable_segments", "expandable_segments", SwitchRule{&Options::expandable_segments},
     "PyTorch's segments that grow in place. Accepted without effect, so that existing "
     "configurations keep working: see `backing`."},

    {"memory_fraction", "per_process_memory_fraction",
     FractionRule{&Options::memory_fraction, true},
     "The most that may be reserved, as a fraction of the device's total memory. The smaller of "
     "this and `limit` counts."},

    {"limit", "",
     BytesRule{&Options::limit, 2 * kMiB, kMostBytes, 1, Special<std::uint64_t>{"none", 0}},
     "The most that may be reserved on the device. The smaller of this and `memory_fraction` "
     "counts."},

    {"overflow", "",
     BytesRule{&Options::overflow, 2 * kMiB, kMostBytes, 1, Special<std::uint64_t>{"none", 0}},
     "The most host memory that may serve requests when the device is full, more slowly: "
     "docs/overflow.md says when it pays. A device without host pages, or a host that admits "
     "less, is an error; under `cistern run` such a device goes on without."},

    {"keep_ms", "", CountRule{&Options::keep_ms, 0, 1'000'000'000},
     "Free memory of the default pool that nothing has used for this many milliseconds goes back "
     "to the device by itself, at the latest after twice as many. 0: it is kept. A thread of the "
     "allocator's own does so. Giving a segment back waits for the device."},

    {"large_segment_size", "large_segment_size_mb",
     BytesRule{&Options::large_segment_size, 2 * kMiB, 16 * kGiB, 2 * kMiB},
     "The size of the segments that requests over 1 MiB and under 10 MiB share. Larger ones get a "
     "segment of their own, rounded up to 2 MiB."},

    {"release_lock_on_cudamalloc", "release_lock_on_cudamalloc",
     SwitchRule{&Options::release_lock_on_cudamalloc},
     "Accepted without effect, so that existing configurations keep working: a request that free "
     "memory serves never waits for a device call."},

    {"cross_stream_reuse", "",
     CrossStreamRule{&Options::cross_stream_reuse,
                     {{{"true", CrossStreamReuse::kComplete},
                       {"wait", CrossStreamReuse::kWait},
                       {"false", CrossStreamReuse::kOff},
                       {"True", CrossStreamReuse::kComplete},
                       {"1", CrossStreamReuse::kComplete},
                       {"False", CrossStreamReuse::kOff},
                       {"0", CrossStreamReuse::kOff}}}},
     "Whether free memory of one stream serves requests on others. `true`: once the work that "
     "used it is complete; rather than run out of memory, the asking stream waits for that work, "
     "on the device. `wait`: it waits like that already before the device is asked for more, if "
     "the program uses at most 64 streams. So streams run less at once, and need less. `false`: "
     "never."},

    {"prefer_old_segments", "", SwitchRule{&Options::prefer_old_segments},
     "Which of equal free blocks serves: the one in the oldest segment, or in the youngest. "
     "PyTorch takes the lowest address, mostly the youngest, because drivers hand addresses out "
     "downwards."},

    {"thread_cache", "",
     BytesRule{&Options::thread_cache, 64 * kKiB, kGiB, 1, Special<std::uint64_t>{"off", 0}},
     "How much of what it has freed a thread may keep for each stream, to have it back without a "
     "lock. Blocks up to 64 KiB may fill it, those up to 1 MiB only while all take at most three "
     "quarters. It also keeps one larger block, of up to four times this and at most 32 MiB, "
     "while no other thread uses the stream; none if that could exceed 1/64 of the device. All "
     "threads together keep at most 1/64 of the device of blocks up to 1 MiB. Kept memory counts "
     "as free, and goes back before the device is asked for more and when the cache is emptied. "
     "Off if other options round sizes."},

    {"history", "", CountRule{&Options::history, 0, 1'000'000'000},
     "How many events (allocations, frees, memory from the device) an allocator remembers from "
     "its beginning, at 48 bytes each; 0: none. Meanwhile no request is served from a thread's "
     "cache. docs/history.md says more."},

    {"history_folder", "", FolderRule{&Options::history_folder},
     "Each allocator writes its whole history to a file in this folder, `history-PID-N.trace`. "
     "`history` then bounds the events that wait to be written; 0 means a million."},

    {"history_stacks", "", SwitchRule{&Options::history_stacks},
     "Whether a history has the C++ call stack of each allocation."},

    {"nvtx_labels", "", SwitchRule{&Options::nvtx_labels},
     "Whether ranges that the program pushes by NVTX label what is allocated inside. It takes "
     "Cistern as a shared library, an allocator made before the program's first call of NVTX, and "
     "no profiler in NVTX_INJECTION64_PATH."},

    {"oom_dump", "", FolderRule{&Options::oom_dump},
     "A request that finds no memory writes a dump to this folder, `oom-PID-N.trace`: the "
     "request, and the history as far as it is kept, else what lives. The error's text ends with "
     "the command that draws it. A process writes at most four."},
};

// PyTorch's spellings in MiB are whole numbers; as a size the table's own rule can judge them.
std::string bytesOfMib(std::string_view value) {
  return readCount(value) ? std::string(value) + " MiB" : std::string(value) + " (not whole MiB)";
}

}  // namespace

std::span<const OptionRow> optionTable() { return kTable; }

bool OptionRow::set(Options& options, std::string_view key, std::string_view value) const {
  const bool in_mib = key != name && key.ends_with("_mb");
  const std::string given = in_mib ? bytesOfMib(value) : std::string(value);
  return std::visit(
      [&](const auto& kind) {
        const auto read = kind.read(given);
        if (read) options.*kind.field = *read;
        return read.has_value();
      },
      rule);
}

std::string OptionRow::print(const Options& options) const {
  return std::visit([&](const auto& kind) { return kind.print(options.*kind.field); }, rule);
}

std::string OptionRow::readAs(std::string_view key, std::string_view value) const {
  if (key.ends_with("_mb")) return " (given as whole MiB)";
  if (!std::holds_alternative<BytesRule>(rule) || !readCount(value)) return {};
  return fmt::format(" ({} without a unit is {} byte{})", value, value, value == "1" ? "" : "s");
}

std::string OptionRow::allowed() const {
  return std::visit([](const auto& kind) { return kind.allowed(); }, rule);
}

}  // namespace cistern
