#include "interop/report/advice.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "interop/report/names.hpp"

namespace cistern::report {
namespace {

constexpr std::size_t kMostNamed = 3;  // more are no advice

std::uint64_t unusedFor(const Shortage& shortage, std::string_view why) {
  for (const recording::Unused& unused : shortage.unused) {
    if (unused.why == why) return unused.bytes;
  }
  return 0;
}

std::string more(const Shortage& shortage, std::uint64_t missing) {
  const std::string all = formatBytes(shortage.request.bytes);
  if (!shortage.knows_available)
    return fmt::format("The request needs {} in one piece: that much more memory serves it.", all);
  return fmt::format(
      "{} more of limit or of device memory serves the request of {}: {} can still be taken.",
      formatBytes(missing), all, formatBytes(shortage.available));
}

std::string inPieces(const Shortage& shortage, std::uint64_t missing) {
  const std::uint64_t pieces = unusedFor(shortage, "too_small");
  if (pieces < missing || missing == 0) return {};
  return fmt::format(
      "Enough is free, in pieces: {} for the {} that are missing. An allocator that moves pages "
      "puts such pieces together: Cistern does, and PyTorch's expandable segments do in part.",
      formatBytes(pieces), formatBytes(missing));
}

std::string ofOthers(const Shortage& shortage, std::uint64_t missing, std::string_view why,
                     std::string_view way) {
  const std::uint64_t bytes = unusedFor(shortage, why);
  if (bytes < missing || missing == 0) return {};
  return fmt::format("{} {}", formatBytes(bytes), way);
}

bool sameSite(const Holder& a, const Holder& b) { return a.stack == b.stack && a.label == b.label; }

/// Whether the request fits without a holder's blocks, if that is known.
std::optional<bool> fitsWithout(const Shortage& shortage, const Holder& holder) {
  return shortage.fits_without ? shortage.fits_without(holder) : std::optional<bool>{};
}

/// How the request fares without a holder's blocks, as the end of a sentence.
std::string without(const Shortage& shortage, const Holder& holder, std::uint64_t missing) {
  if (const std::optional<bool> fits = fitsWithout(shortage, holder))
    return *fits ? " Without that memory the request fits."
                 : " Without that memory it still does not.";
  return holder.bytes < missing
             ? fmt::format(" That is less than the {} that are missing.", formatBytes(missing))
             : std::string{};
}

/// Whether a leak's sentence says what would have helped.
bool leakHelps(const Shortage& shortage, std::uint64_t missing) {
  if (shortage.leaking.empty()) return false;
  const Holder& largest = shortage.leaking.front();
  return fitsWithout(shortage, largest).value_or(largest.bytes >= missing);
}

/// The smallest of the holders that have enough, without which the request fits. To find out is
/// dear, so only a few are tried.
const Holder* smallestEnough(const Shortage& shortage, const std::vector<Holder>& holders,
                             std::uint64_t missing) {
  int tries = 8;
  for (auto holder = holders.rbegin(); holder != holders.rend() && tries > 0; ++holder) {
    if (holder->bytes < missing) continue;
    --tries;
    if (fitsWithout(shortage, *holder).value_or(true)) return &*holder;
  }
  return nullptr;
}

/// The smallest holder that is enough; else the largest ones together. Those that leak have a
/// sentence already.
std::string freeFirst(const recording::Recording& recording, const Shortage& shortage,
                      std::uint64_t missing) {
  std::vector<Holder> holders;
  for (const Holder& holder : shortage.holders) {
    if (shortage.leaking.empty() || !sameSite(holder, shortage.leaking.front()))
      holders.push_back(holder);
  }
  if (const Holder* const enough = smallestEnough(shortage, holders, missing)) {
    return fmt::format("Free the {} of {} first: {} {}.{}", countedBlocks(enough->blocks),
                       nameOf(recording, *enough), enough->blocks == 1 ? "it holds" : "they hold",
                       formatBytes(enough->bytes), without(shortage, *enough, missing));
  }
  std::uint64_t bytes = 0;
  std::string names;
  for (std::size_t i = 0; i < std::min(kMostNamed, holders.size()); ++i) {
    bytes += holders[i].bytes;
    names += (i == 0 ? "" : ", ") + nameOf(recording, holders[i]);
  }
  if (bytes < missing) return {};
  return fmt::format("Free the blocks of {} first: together they hold {}.", names,
                     formatBytes(bytes));
}

std::string leak(const recording::Recording& recording, const Shortage& shortage,
                 std::uint64_t missing) {
  if (shortage.leaking.empty()) return {};
  const Holder& largest = shortage.leaking.front();
  return fmt::format("{} keeps ever more memory: it holds {} in {}.{}", nameOf(recording, largest),
                     formatBytes(largest.bytes), countedBlocks(largest.blocks),
                     without(shortage, largest, missing));
}

void add(std::vector<std::string>& advice, std::string text) {
  if (!text.empty()) advice.push_back(std::move(text));
}

void addReasons(std::vector<std::string>& advice, const Shortage& shortage, std::uint64_t missing) {
  add(advice, inPieces(shortage, missing));
  add(advice,
      ofOthers(shortage, missing, "other_stream",
               "is free in other streams' memory: empty the cache, or let the streams share it."));
  add(advice,
      ofOthers(shortage, missing, "incomplete",
               "is freed and waits for queued work: wait for that work before the request."));
  add(advice,
      ofOthers(
          shortage, missing, "other_pool",
          "is free in other pools: reset or destroy the graphs and pools that are not needed."));
  add(advice, more(shortage, missing));
}

}  // namespace

std::string nameOf(const recording::Recording& recording, const Holder& holder) {
  if (holder.stack != 0) return siteOf(recording, holder.stack);
  if (holder.label != 0) return fmt::format("label {}", labelOf(recording, holder.label));
  return streamOf(recording, holder.stream);
}

std::vector<std::string> adviceFor(const recording::Recording& recording,
                                   const Shortage& shortage) {
  const std::uint64_t missing = shortage.request.bytes > shortage.available
                                    ? shortage.request.bytes - shortage.available
                                    : shortage.request.bytes;
  std::vector<std::string> advice;
  const bool leak_helps = leakHelps(shortage, missing);
  if (leak_helps) add(advice, leak(recording, shortage, missing));
  if (!shortage.explained) addReasons(advice, shortage, missing);
  add(advice, freeFirst(recording, shortage, missing));
  if (!leak_helps) add(advice, leak(recording, shortage, missing));
  return advice;
}

}  // namespace cistern::report
