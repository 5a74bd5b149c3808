// The things that the entries of a PyTorch memory snapshot share: call stacks, labels, pools and
// streams. An entry has their numbers, so that millions of entries stay small.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "interop/trace/hash.hpp"

namespace cistern::trace {

/// A function that a call stack passes through. `line` is 0 if it is not known.
struct SnapshotFrame {
  std::string function;
  std::string file;
  std::uint32_t line = 0;
};

/// A call stack: the number of its caller's stack, and of its innermost frame.
struct SnapshotStack {
  std::uint32_t parent = 0;
  std::uint32_t frame = 0;
};

struct SnapshotLabel {
  std::uint32_t parent = 0;
  std::string name;
};

/// Numbers count from 0. Stack 0 is the unknown one, label 0 no label, pool 0 the default pool {0,
/// 0}, and stream 0 the default stream. A parent has a lower number.
struct SnapshotTables {
  std::vector<SnapshotFrame> frames;
  std::vector<SnapshotStack> stacks{{}};
  std::vector<SnapshotLabel> labels{{}};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pools{{0, 0}};
  std::vector<std::uint64_t> streams{0};
};

/// Fills the tables. Equal things get one number. A file can name new ones in a few bytes each, so
/// callers ask isFull() before they add a frame, a stack, a label or a pool.
class TableFiller {
 public:
  /// More than any program has, and few enough for memory: 200 MB of stacks.
  static constexpr std::size_t kMost = (std::size_t{1} << 20) - 16;
  static constexpr std::size_t kMostStacks = std::size_t{1} << 22;

  std::uint32_t frame(std::string_view function, std::string_view file, std::uint32_t line);
  std::uint32_t stack(std::uint32_t parent, std::uint32_t frame);
  /// An empty name gives the parent.
  std::uint32_t label(std::uint32_t parent, std::string_view name);
  std::uint32_t pool(std::uint64_t uuid, std::uint64_t uid);
  std::uint32_t stream(std::uint64_t name);

  /// Whether a table is as full as may be.
  bool isFull() const;
  /// About the memory that the tables take.
  std::size_t bytes() const;
  const SnapshotTables& tables() const { return tables_; }
  SnapshotTables finish() { return std::move(tables_); }

 private:
  using Pair = std::pair<std::uint64_t, std::uint64_t>;
  template <class Key, class Hash>
  using Numbers = std::unordered_map<Key, std::uint32_t, Hash>;

  SnapshotTables tables_;
  Numbers<std::string, std::hash<std::string>> frames_, labels_;
  Numbers<std::uint64_t, SeededHash> stacks_, streams_{{0, 0}};
  Numbers<Pair, SeededPairHash> pools_{{{0, 0}, 0}};
  std::uint64_t last_stream_ = 0;  // spares most look-ups
  std::uint32_t last_stream_number_ = 0;
};

}  // namespace cistern::trace
