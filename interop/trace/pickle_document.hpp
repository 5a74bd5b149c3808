// The contents of a pickle, as plain data in one arena. Values are named by index, so sharing and
// cycles in the pickle cost nothing here, and tearing it down needs no recursion. Read next:
// pickle_machine.hpp, which fills it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace cistern::trace {

/// kWideInt is an int beyond 64 bits. Its value and those of floats are not kept, because no field
/// that is read from a snapshot holds either.
enum class ValueKind : std::uint8_t {
  kNone,
  kBool,
  kInt,
  kWideInt,
  kFloat,
  kString,
  kBytes,
  kList,
  kTuple,
  kDict,
  kSet,
};

/// Python's name for the type: "int", "dict", …
std::string_view kindName(ValueKind kind);

using ValueId = std::uint32_t;

class PickleDocument {
 public:
  ValueId root() const { return root_; }
  std::size_t size() const { return values_.size(); }
  ValueKind kind(ValueId id) const { return values_[id].kind; }

  /// Pre: kind is kInt.
  std::int64_t integer(ValueId id) const { return static_cast<std::int64_t>(values_[id].payload); }
  /// Pre: kind is kString or kBytes. A view of the pickle's own text, which must still exist;
  /// escapes of protocol 0 stay as they are written.
  std::string_view text(ValueId id) const;
  /// The elements of a list, tuple or set; of a dict, its keys and values in turn. Empty for
  /// others.
  std::span<const ValueId> items(ValueId id) const;
  /// The value that `dict` holds under a string; none if it has no such key. Walks the dict.
  std::optional<ValueId> find(ValueId dict, std::string_view key) const;

  ValueId add(ValueKind kind);
  ValueId addInteger(std::int64_t value);
  ValueId addText(ValueKind kind, std::string_view text);
  ValueId addContainer(ValueKind kind, std::vector<ValueId> items);
  /// Pre: `id` is a container.
  void extend(ValueId id, std::vector<ValueId> items);
  void setRoot(ValueId id) { root_ = id; }

 private:
  struct Value {
    std::uint64_t payload;  // an int; where a text begins; an index into containers_
    std::uint32_t length;   // of a text
    ValueKind kind;
  };

  bool isContainer(ValueId id) const { return values_[id].kind >= ValueKind::kList; }

  std::vector<Value> values_;
  std::vector<std::vector<ValueId>> containers_;
  ValueId root_ = 0;
};

}  // namespace cistern::trace
