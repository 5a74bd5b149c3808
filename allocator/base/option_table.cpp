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
     "The memory behind the addresses of blocks. `pages`: physical memory that the allocator maps "
     "where it is needed, and moves there from where it lies free. A device without virtual memory "
     "management has `segments` instead. `segments`: one device malloc for each segment."},

    {"page_size", "",
     BytesRule{&Options::page_size, 2 * kMiB, 16 * kGiB, 2 * kMiB,
               Special<std::uint64_t>{"auto", 0}},
     "The size of the pages that back large requests (over 1 MiB). Small ones always share pages "
     "of 2 MiB. `auto` chooses by what is reserved, what is left and what calls have cost. A call "
     "to the device costs by the page, but a page with one block in it cannot move."},

    {"recycle", "",
     RecycleRule{
         &Options::recycle,
         {{{"budget", Recycle::kBudget}, {"eager", Recycle::kEager}, {"off", Recycle::kOff}}}},
     "Whether pages that lie wholly free are moved to where they are needed, before the device is "
     "asked for more. `budget`: in pages as large as `recycle_budget` makes them. `eager`: in "
     "pages as small as they get, whatever that costs. `off`: never."},

    {"recycle_budget", "",
     FractionRule{&Options::recycle_budget, false, Special<double>{"none", 0.0}},
     "The fraction of wall time that may go into calls to the device beyond what growing by pages "
     "of 10 MiB would take. Beyond it new pages are made larger."},

    {"background_thread", "", SwitchRule{&Options::background_thread},
     "Whether a thread of the allocator's own removes the mappings that moved pages left behind, "
     "and gives back what emptyCache found still in use. Without it the next miss outside of a "
     "capture does it."},

    {"max_split_size", "max_split_size_mb",
     BytesRule{&Options::max_split_size, 20 * kMiB, kMostBytes, 1,
               Special<std::uint64_t>{"unlimited", kUnlimited}},
     "Free blocks of this size and above are never split, and serve only requests of this size and "
     "above. It keeps very large blocks whole where small requests would crumble them."},

    {"max_non_split_rounding", "max_non_split_rounding_mb",
     BytesRule{&Options::max_non_split_rounding, 2 * kMiB, kMostBytes},
     "How much larger than the request a block that may not be split (see `max_split_size`) can be "
     "and still serve it."},

    {"roundup_power2_divisions", "roundup_power2_divisions",
     DivisionsRule{&Options::roundup_power2_divisions},
     "Rounds requests up to one of this many equal steps between two powers of two. So sizes that "
     "differ a little share blocks: with 4, 9 MiB become 10 MiB. In a list each key is a size in "
     "MiB, and its number holds from there up to twice that size. The first key's number also "
     "holds for everything below. The number of `>` holds for everything above the last key. "
     "Between two keys, a power of two that is not named is not rounded. 65536 means the same as "
     "32768. 0 and 1 turn the rounding off for their sizes."},

    {"garbage_collection_threshold", "garbage_collection_threshold",
     FractionRule{&Options::garbage_collection_threshold, false, Special<double>{"off", 0.0}},
     "Once more than this fraction of the limit is reserved, segments that lie wholly free and "
     "have gone unused longest are returned before the device is asked for more."},

    {"expandable_segments", "expandable_segments", SwitchRule{&Options::expandable_segments},
     "PyTorch's request for segments that grow in place. Accepted, and remembered, so that an "
     "existing configuration keeps working, and without effect: see `backing`."},

    {"memory_fraction", "per_process_memory_fraction",
     FractionRule{&Options::memory_fraction, true},
     "The fraction of the device's total memory that may be reserved. The smaller of this and "
     "`limit` counts."},

    {"limit", "",
     BytesRule{&Options::limit, 2 * kMiB, kMostBytes, 1, Special<std::uint64_t>{"none", 0}},
     "The most that may be reserved on the device. The smaller of this and `memory_fraction` "
     "counts."},

    {"overflow", "",
     BytesRule{&Options::overflow, 2 * kMiB, kMostBytes, 1, Special<std::uint64_t>{"none", 0}},
     "The most bytes of the host's memory that may serve requests when the device is full. They "
     "are slower there: docs/overflow.md says when it pays. A device without pages of host memory, "
     "or a host that admits less, is an error. Under `cistern run` such a device goes on without."},

    {"large_segment_size", "large_segment_size_mb",
     BytesRule{&Options::large_segment_size, 2 * kMiB, 16 * kGiB, 2 * kMiB},
     "The size of the segments that medium requests (over 1 MiB and under 10 MiB) share. Larger "
     "requests get a segment of their own, rounded up to 2 MiB."},

    {"release_lock_on_cudamalloc", "release_lock_on_cudamalloc",
     SwitchRule{&Options::release_lock_on_cudamalloc},
     "Accepted so that an existing configuration keeps working, and without effect: a request that "
     "free memory serves never waits for a device call."},

    {"cross_stream_reuse", "",
     CrossStreamRule{&Options::cross_stream_reuse,
                     {{{"true", CrossStreamReuse::kComplete},
                       {"wait", CrossStreamReuse::kWait},
                       {"false", CrossStreamReuse::kOff},
                       {"True", CrossStreamReuse::kComplete},
                       {"1", CrossStreamReuse::kComplete},
                       {"False", CrossStreamReuse::kOff},
                       {"0", CrossStreamReuse::kOff}}}},
     "Whether free memory of one stream serves requests on others. `true`: once the work that used "
     "it is complete. Before the program is out of memory, the asking stream is made to wait for "
     "that work, on the device. `wait`: before the allocator asks the device for more, it makes "
     "the asking stream wait for that work, on the device. Streams that wait for each other run "
     "less at once, and need less. If the program uses more than 64 streams, they are made to wait "
     "only before the program is out of memory. `false`: never."},

    {"prefer_old_segments", "", SwitchRule{&Options::prefer_old_segments},
     "If equal free blocks lie in several segments: whether the oldest segment serves, or the "
     "youngest. PyTorch takes the one at the lowest address, which is as a rule the youngest: "
     "drivers hand addresses out downwards."},

    {"thread_cache", "",
     BytesRule{&Options::thread_cache, 64 * kKiB, kGiB, 1, Special<std::uint64_t>{"off", 0}},
     "How much a thread may keep, for each stream, of what it has freed, to have it back without a "
     "lock. Blocks up to 64 KiB may fill it. Larger ones up to 1 MiB are kept while all together "
     "take at most three quarters of it. It also keeps one larger block, of up to four times this "
     "and at most 32 MiB, while no other thread uses the stream. It keeps no such block if that "
     "block could exceed 1/64 of the device. All threads together keep at most 1/64 of the device "
     "of blocks up to 1 MiB. Kept memory counts as free. It goes back before the device is asked "
     "for more, and when the cache is emptied. Off if other options round sizes."},

    {"history", "", CountRule{&Options::history, 0, 1'000'000'000},
     "How many events of its history an allocator keeps in memory from its beginning: allocations, "
     "frees, and memory from the device. 0: none. An event takes 48 bytes. While a history is "
     "recorded, no request is served from a thread's cache. docs/history.md says more."},

    {"history_folder", "", FolderRule{&Options::history_folder},
     "Each allocator writes its history to a file of its own in this folder, from its beginning: "
     "`history-PID-N.trace`. With it, `history` says how many events may wait to be written; 0 "
     "means a million."},

    {"history_stacks", "", SwitchRule{&Options::history_stacks},
     "Whether a history has the C++ call stack of each allocation."},

    {"nvtx_labels", "", SwitchRule{&Options::nvtx_labels},
     "Whether ranges that the program pushes by NVTX are labels of what is allocated inside. Needs "
     "Cistern as a shared library, and an allocator that is made before the program's first call "
     "of NVTX. No profiler that NVTX_INJECTION64_PATH names may be in use."},

    {"oom_dump", "", FolderRule{&Options::oom_dump},
     "If a request finds no memory, the allocator writes a dump to this folder: "
     "`oom-PID-N.trace`. It has the history as far as it is kept, else what lives, and the "
     "request. "
     "The text of the error ends with the command that draws it. A process writes four at most."},
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
