// The text of reports: on a wrong free, and on a request that no memory was found for.
#include "allocator/base/report_text.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <span>

#include <dlfcn.h>
#include <fmt/format.h>

#include "allocator/base/bytes.hpp"

namespace cistern {
namespace {

std::string streamName(Stream stream) {
  return stream.raw == 0 ? "default stream" : fmt::format("stream {:#x}", stream.raw);
}

// The default pool goes without saying.
std::string poolName(MempoolId_t pool) {
  return pool == MempoolId_t{} ? "" : fmt::format("pool {{{}, {}}}, ", pool.uuid, pool.uid);
}

std::string codeName(const void* code) {
  Dl_info info{};
  if (dladdr(code, &info) == 0) return fmt::format("{}", code);
  const auto offset = [&](const void* from) {
    return static_cast<const char*>(code) - static_cast<const char*>(from);
  };
  if (info.dli_sname) return fmt::format("{}+{:#x}", info.dli_sname, offset(info.dli_saddr));
  return fmt::format("{}+{:#x}", info.dli_fname, offset(info.dli_fbase));
}

std::string ownerName(const Misuse& m) {
  if (m.pinned) return "pinned memory";
  return m.owner_gone ? "its pool or its stream is gone" : streamName(m.stream);
}

std::string blockText(const Misuse& m) {
  return fmt::format("the block {:#x} of {} ({})", m.block, formatBytes(m.block_bytes),
                     ownerName(m));
}

std::string sentence(const UnusedMemory& part) {
  const std::string bytes = formatBytes(part.bytes);
  switch (part.why) {
    case WhyUnused::kTooSmall:
      return fmt::format("{} is free in pieces that are too small; the largest is {}. ", bytes,
                         formatBytes(part.largest));
    case WhyUnused::kKeptWhole:
      return bytes + " is free in blocks that max_split_size keeps for larger requests. ";
    case WhyUnused::kOtherStream:
      return bytes + " is free on other streams, and cross_stream_reuse is off. ";
    case WhyUnused::kIncomplete:
      return bytes + " is free on other streams, but their queued work may still use it. ";
    case WhyUnused::kOtherPool:
      return bytes + " is free in other pools, which keep it. ";
    case WhyUnused::kHeldInPlace:
      return bytes + " is free, but a graph, another process or a hold keeps it in place. ";
    case WhyUnused::kFreedSince:
      break;
  }
  return bytes + " has become free since: try again. ";
}

/// What the limit of the pool lacks; nothing if it is not that.
std::string adviceOfPool(const OutOfMemoryReport& r) {
  const std::uint64_t room = r.pool_limit - std::min(r.pool_in_use, r.pool_limit);
  if (r.pool_limit == UINT64_MAX || r.rounded <= room) return "";
  return fmt::format(
      "Pool {{{}, {}}} may have {} in use, and has {}: a limit higher by {} would have made it "
      "fit.",
      r.pool.uuid, r.pool.uid, formatBytes(r.pool_limit), formatBytes(r.pool_in_use),
      formatBytes(r.rounded - room));
}

/// What this allocator may still reserve.
std::uint64_t roomOf(const OutOfMemoryReport& r) {
  return r.limit > r.reserved ? r.limit - r.reserved : 0;
}

}  // namespace

std::string Misuse::text() const {
  const std::string head = fmt::format("{} of {:#x}: ", verb, pointer);
  switch (kind) {
    case MisuseKind::kForeignPointer:
      return head + "this allocator never gave it out";
    case MisuseKind::kInteriorPointer:
      return head +
             fmt::format("it points {} into {}", formatBytes(pointer - block), blockText(*this));
    case MisuseKind::kDoubleFree:
      break;
  }
  std::string text = head + "it is not allocated; it lies in " + blockText(*this) + ", free";
  if (pinned) return text;
  if (freed_by == nullptr) return text + ", freed longer ago than is remembered";
  return text + fmt::format(", freed by {} on thread {}", codeName(freed_by), freed_on_thread);
}

void defaultMisuseHook(const Misuse& misuse) {
  try {
    std::fprintf(stderr, "cistern: %s\n", misuse.text().c_str());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "cistern: %s of a pointer that is no allocated block's\n",
                 misuse.verb.c_str());
  }
#if defined(CISTERN_DEBUG)
  std::abort();
#endif
}

std::string whyUnused(const OutOfMemoryReport& r) {
  std::uint64_t free = 0, pending = 0;
  for (const UnusedMemory& part : r.unused) free += part.bytes;
  for (const HeapReport& heap : r.heaps) {
    if (heap.location == r.location) pending += heap.pending;
  }
  std::string text;
  const bool host = r.location == Location::kHost;
  const std::uint64_t left = host ? r.host_left : std::min(roomOf(r), r.device_free);
  if (left >= r.rounded || free >= r.rounded - left) {  // any number of bytes may be left
    for (const UnusedMemory& part : r.unused) text += sentence(part);
  }
  if (pending > 0) {
    text += fmt::format("{} is freed, but queued work of other streams still uses it. ",
                        formatBytes(pending));
  }
  return text;
}

// The limit and the device's memory have no part in it.
static std::string adviceOnHost(const OutOfMemoryReport& r) {
  if (r.rounded > kLargestHostBlock) {
    return fmt::format("No block of host memory can be larger than {}.",
                       formatBytes(kLargestHostBlock));
  }
  const std::string text = whyUnused(r);
  const std::uint64_t need = r.segment - std::min(r.segment, r.returnable);
  if (r.host_left < need) {
    return text +
           fmt::format("The host admits {} in further pages; {} more would have made it fit.",
                       formatBytes(r.host_left), formatBytes(need - r.host_left));
  }
  return text + "The device refused a page of host memory, although the host has room.";
}

std::uint64_t roomBeside(const OutOfMemoryReport& r) {
  const std::uint64_t held = std::min(r.overflow_limit, r.overflow_reserved);
  return std::min(r.overflow_limit - held, r.host_left);
}

static std::string adviceOfOverflow(const OutOfMemoryReport& r) {
  if (r.overflow_limit == 0) return {};
  if (roomBeside(r) < r.overflow_limit - std::min(r.overflow_limit, r.overflow_reserved))
    return fmt::format("The host admits {} in further pages for overflow. ",
                       formatBytes(r.host_left));
  return fmt::format("Overflow has {} of its {} on the host. ", formatBytes(r.overflow_reserved),
                     formatBytes(r.overflow_limit));
}

// What overflow has no room for.
static std::uint64_t beyondOverflow(const OutOfMemoryReport& r) {
  return r.segment - std::min(r.segment, roomBeside(r));
}

bool mayLieInBoth(const OutOfMemoryReport& r) {
  return r.overflow_limit > 0 && r.rounded >= kPageUnit && !r.captured;
}

static std::uint64_t deviceNeed(const OutOfMemoryReport& r) {
  return mayLieInBoth(r) ? beyondOverflow(r) : r.segment;
}

// What this allocator holds once its free memory is back.
static std::uint64_t heldOf(const OutOfMemoryReport& r) {
  return r.reserved - std::min(r.reserved, r.returnable);
}

std::uint64_t OutOfMemoryReport::leastLimit() const { return heldOf(*this) + deviceNeed(*this); }

// How much of overflow would have done in place of `missing` bytes of the device.
static std::string orOverflow(const OutOfMemoryReport& r, std::uint64_t missing) {
  const std::uint64_t there = mayLieInBoth(r) ? missing : beyondOverflow(r);
  if (r.overflow_limit == 0 || there == 0) return {};
  return there == missing ? ", or as much of overflow,"
                          : fmt::format(", or {} of overflow,", formatBytes(there));
}

std::string OutOfMemoryReport::advice() const {
  if (const std::string limited = adviceOfPool(*this); !limited.empty()) return limited;
  if (location == Location::kHost) return adviceOnHost(*this);
  if (rounded > device_total + overflow_limit) {
    return fmt::format("The device has {} in all{}; no such block can ever exist.",
                       formatBytes(device_total),
                       overflow_limit > 0 ? ", and overflow " + formatBytes(overflow_limit) : "");
  }
  const std::uint64_t need = deviceNeed(*this), least = leastLimit();
  const std::uint64_t free = device_free + returnable;
  std::string text = adviceOfOverflow(*this) + whyUnused(*this);
  if (limit < least && limit < device_total) {
    text += fmt::format("A limit higher by {}", formatBytes(least - limit));
    text += free < need ? fmt::format(" and {} more device memory", formatBytes(need - free))
                        : orOverflow(*this, least - limit);
    return text + " would have made it fit.";
  }
  const std::uint64_t held = heldOf(*this);
  const std::uint64_t have = std::min(limit > held ? limit - held : 0, free);
  if (have >= need) return text + "The device refused although it reports room.";
  return text + fmt::format(
                    "{} more device memory{} would have made it fit; programs other than "
                    "this allocator hold {}.",
                    formatBytes(need - have), orOverflow(*this, need - have),
                    formatBytes(device_total - device_free -
                                std::min(reserved, device_total - device_free)));
}

std::string figuresOf(const OutOfMemoryReport& r, const StreamName& name_of) {
  const std::string multiple =
      r.alignment > 512 ? " at a multiple of " + formatBytes(r.alignment) : "";
  std::string text = fmt::format(
      "out of memory on {}: {}{} asked for on the {}{} (placed as {})\n"
      "  allowed {}, reserved {}, allocated {}; the device has {} free of {}\n",
      r.device, formatBytes(r.requested), multiple, poolName(r.pool), name_of(r.stream),
      formatBytes(r.rounded), formatBytes(r.limit), formatBytes(r.reserved),
      formatBytes(r.allocated), formatBytes(r.device_free), formatBytes(r.device_total));
  if (r.host_reserved > 0 || r.location == Location::kHost) {
    text += fmt::format(
        "  in host memory: reserved {}; the host admits {} more\n", formatBytes(r.host_reserved),
        r.host_left == UINT64_MAX ? "any number of bytes" : formatBytes(r.host_left));
  }
  if (!r.device_error.empty()) text += "  the device said: " + r.device_error + "\n";
  constexpr std::size_t kShown = 16;
  for (const HeapReport& h : std::span(r.heaps).first(std::min(r.heaps.size(), kShown))) {
    text += fmt::format(
        "  {}{}{}: reserved {}, allocated {}, in use by queued work {}, free {} "
        "(largest {})\n",
        poolName(h.pool), h.location == Location::kHost ? "in host memory, " : "",
        name_of(h.stream), formatBytes(h.reserved), formatBytes(h.allocated),
        formatBytes(h.pending), formatBytes(h.free), formatBytes(h.largest_free));
  }
  if (r.heaps.size() > kShown)
    text += fmt::format("  and {} more, each with less reserved\n", r.heaps.size() - kShown);
  if (!r.holders.empty()) text += "  largest blocks held:\n";
  for (const HolderReport& h : r.holders) {
    text += fmt::format("    {:#x}  {} on the {}\n", h.address, formatBytes(h.bytes),
                        name_of(h.stream));
  }
  return text;
}

std::string OutOfMemoryReport::text() const {
  return figuresOf(*this, streamName) + "  " + advice() + (dump.empty() ? "" : "\n  " + dump);
}

}  // namespace cistern
