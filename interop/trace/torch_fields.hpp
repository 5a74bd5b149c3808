// The fields of a snapshot's dicts, all by their key. It complains at a place in Python's terms.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interop/trace/pickle_document.hpp"
#include "interop/trace/trace_error.hpp"

namespace cistern::trace {

class SnapshotFields final : public ErrorSite {
 public:
  /// `file` must outlive it.
  explicit SnapshotFields(const std::string& file) : file_(file) {}

  /// Which entry is being read: "device_traces[0][3]".
  std::string place = "the snapshot";

  /// The value under a key; none if the dict has no such key, or None under it. Fails if it is of
  /// another kind.
  std::optional<ValueId> look(const PickleDocument& document, ValueId dict, std::string_view key,
                              ValueKind kind) const;
  /// The same, and fails if there is none.
  ValueId require(const PickleDocument& document, ValueId dict, std::string_view key,
                  ValueKind kind) const;
  /// Addresses and streams are pointers, which some versions write as signed.
  std::uint64_t bits(const PickleDocument& document, ValueId dict, std::string_view key) const;
  std::uint64_t byteCount(const PickleDocument& document, ValueId dict, std::string_view key) const;
  /// The number of a GPU under "device", 0 if there is none.
  std::uint32_t device(const PickleDocument& document, ValueId dict) const;

  // ---- Fields that a reader can do without: an odd value counts as none, and is counted. ----

  std::optional<ValueId> lookIfSound(const PickleDocument& document, ValueId dict,
                                     std::string_view key, ValueKind kind);
  /// An int from 0 to `most`.
  std::optional<std::uint64_t> number(const PickleDocument& document, ValueId dict,
                                      std::string_view key, std::uint64_t most);
  /// The text under a key; empty if there is none.
  std::string_view text(const PickleDocument& document, ValueId dict, std::string_view key);
  void countOdd(std::string_view key) { ++odd_[std::string(key)]; }
  /// For people: which fields had odd values.
  std::vector<std::string> notes() const;

  [[noreturn]] void fail(const std::string& what) const override {
    throw TraceError(file_, place + ": " + what);
  }

 private:
  const std::string& file_;
  std::map<std::string, std::uint64_t> odd_;  ///< how many values of each key were odd
};

}  // namespace cistern::trace
