#include "interop/trace/torch_tables.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace cistern::trace {
namespace {

// The number under `key`, or that of the row which `make` appends to `rows`.
template <class Map, class Key, class Rows, class Make>
std::uint32_t numberOf(Map& numbers, Key key, Rows& rows, const Make& make) {
  const auto [found, added] =
      numbers.try_emplace(std::move(key), static_cast<std::uint32_t>(rows.size()));
  if (added) rows.push_back(make());
  return found->second;
}

}  // namespace

std::uint32_t TableFiller::frame(std::string_view function, std::string_view file,
                                 std::uint32_t line) {
  return numberOf(frames_, fmt::format("{}\n{}\n{}", line, file, function), tables_.frames, [&] {
    return SnapshotFrame{std::string(function), std::string(file), line};
  });
}

std::uint32_t TableFiller::stack(std::uint32_t parent, std::uint32_t frame) {
  return numberOf(stacks_, (std::uint64_t{parent} << 32) | frame, tables_.stacks, [&] {
    return SnapshotStack{parent, frame};
  });
}

std::uint32_t TableFiller::label(std::uint32_t parent, std::string_view name) {
  if (name.empty()) return parent;
  return numberOf(labels_, fmt::format("{}\n{}", parent, name), tables_.labels, [&] {
    return SnapshotLabel{parent, std::string(name)};
  });
}

std::uint32_t TableFiller::pool(std::uint64_t uuid, std::uint64_t uid) {
  return numberOf(pools_, Pair{uuid, uid}, tables_.pools, [&] { return Pair{uuid, uid}; });
}

std::uint32_t TableFiller::stream(std::uint64_t name) {
  if (name == last_stream_) return last_stream_number_;
  last_stream_ = name;
  return last_stream_number_ = numberOf(streams_, name, tables_.streams, [&] { return name; });
}

// A row, its key, and its place in the map from keys.
std::size_t TableFiller::bytes() const {
  constexpr std::size_t kFrame = 256, kLabel = 192, kOther = 64;
  return tables_.frames.size() * kFrame + tables_.labels.size() * kLabel +
         (tables_.stacks.size() + tables_.pools.size() + tables_.streams.size()) * kOther;
}

bool TableFiller::isFull() const {
  return std::max({tables_.frames.size(), tables_.labels.size(), tables_.pools.size()}) >= kMost ||
         tables_.stacks.size() >= kMostStacks;
}

}  // namespace cistern::trace
