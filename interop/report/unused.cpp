#include "interop/report/unused.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"

namespace cistern::report {
namespace {

using recording::Reserved;
using recording::Unused;

/// Pages side by side become one range.
std::vector<Reserved> joined(const recording::ReservedRanges& reserved) {
  std::vector<Reserved> ranges;
  for (const auto& [begin, range] : reserved.all()) {
    const bool joins = !ranges.empty() && range.expandable && ranges.back().expandable &&
                       ranges.back().end == begin && ranges.back().pool == range.pool &&
                       ranges.back().stream == range.stream;
    if (joins) {
      ranges.back().end = range.end;
    } else {
      ranges.push_back(range);
    }
  }
  return ranges;
}

struct Taken {
  std::uint64_t begin, end;
};

std::vector<Taken> takenPlaces(const std::vector<Life>& lives, const Living& living) {
  std::vector<Taken> places;
  const auto add = [&](std::uint32_t number) {
    const Life& life = lives[number];
    if (life.address != 0)
      places.push_back({life.address, recording::endOf(life.address, takenBytes(life.bytes))});
  };
  for (const std::uint32_t number : living.held) add(number);
  for (const std::uint32_t number : living.pending) add(number);
  std::sort(places.begin(), places.end(),
            [](const Taken& a, const Taken& b) { return a.begin < b.begin; });
  return places;
}

std::string_view whyUnused(const Request& request, const Gap& gap) {
  if (gap.pool != request.pool) return "other_pool";
  if (gap.stream != request.stream) return "other_stream";
  return gap.bytes < request.bytes ? "too_small" : "kept_whole";
}

void count(std::map<std::string_view, Unused>& found, std::string_view why, std::uint64_t bytes) {
  Unused& unused = found[why];
  unused.why = why;
  unused.bytes += bytes;
  unused.largest = std::max(unused.largest, bytes);
}

std::string_view meaningOf(std::string_view why, bool has_request) {
  if (why == "too_small") return "is free in pieces that are smaller than the request";
  if (why == "kept_whole") return "is free, but the allocator keeps it for requests of other sizes";
  if (why == "other_stream") return "is free in memory that belongs to other streams";
  if (why == "incomplete") return "is freed, but queued work of a stream may still use it";
  if (why == "other_pool" && has_request) return "is free in memory that belongs to other pools";
  if (why == "other_pool") return "is free in private pools";
  if (why == "held_in_place") return "is free, but a graph or another process knows its address";
  if (why == "freed_since") return "became free while the request was refused";
  return "is free";
}

}  // namespace

std::vector<Gap> gapsIn(const recording::ReservedRanges& reserved, const std::vector<Life>& lives,
                        const Living& living) {
  std::vector<Gap> gaps;
  const std::vector<Taken> places = takenPlaces(lives, living);
  auto place = places.begin();
  for (const Reserved& range : joined(reserved)) {
    std::uint64_t at = range.begin;
    const std::uint64_t end = range.end;
    const auto gap_until = [&](std::uint64_t to) {
      if (to > at) gaps.push_back({at, to - at, range.pool, range.stream});
    };
    while (place != places.end() && place->end <= at) ++place;
    for (; place != places.end() && place->begin < end; ++place) {
      gap_until(std::min(place->begin, end));
      at = std::max(at, place->end);
      if (at > end) break;  // it goes on in the next range
    }
    gap_until(end);
  }
  return gaps;
}

std::vector<Unused> unusedBy(const std::optional<Request>& request, const std::vector<Gap>& gaps,
                             const std::vector<Life>& lives, const Living& living) {
  std::map<std::string_view, Unused> found;
  for (const Gap& gap : gaps) {
    const std::string_view without = gap.pool == 0 ? "free" : "other_pool";
    count(found, request ? whyUnused(*request, gap) : without, gap.bytes);
  }
  for (const std::uint32_t number : living.pending)
    count(found, "incomplete", takenBytes(lives[number].bytes));
  std::vector<Unused> all;
  for (auto& [why, unused] : found) all.push_back(std::move(unused));
  std::stable_sort(all.begin(), all.end(),
                   [](const Unused& a, const Unused& b) { return a.bytes > b.bytes; });
  return all;
}

std::string textOf(const Unused& unused, bool has_request) {
  return fmt::format("{} {}; the largest piece is {}.", formatBytes(unused.bytes),
                     meaningOf(unused.why, has_request), formatBytes(unused.largest));
}

}  // namespace cistern::report
