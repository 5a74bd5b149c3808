// The contents of a pickle, as plain data in one arena. Values are named by index, so sharing and
// cycles in the pickle cost nothing here, and tearing it down needs no recursion. Read next:
// pickle_machine.hpp, which fills it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
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

  /// A value that is its kind alone; all of one kind are the same. Pre: kind <= kBool, kWideInt or
  /// kFloat.
  ValueId add(ValueKind kind) const { return static_cast<ValueId>(kind); }
  ValueId addInteger(std::int64_t value);
  ValueId addText(ValueKind kind, std::string_view text);
  ValueId addContainer(ValueKind kind, std::span<const ValueId> items);
  /// Pre: `id` is a container, and `items` are not the document's own.
  void extend(ValueId id, std::span<const ValueId> items);
  void setRoot(ValueId id) { root_ = id; }

  /// The memory that this takes.
  std::size_t bytes() const {
    return values_.size() * sizeof(Value) + items_.capacity() * sizeof(ValueId);
  }

 private:
  struct Value {
    std::uint64_t payload;  // an int; where a text begins; where a container's items begin
    std::uint32_t length;   // of a text, or of a container in items
    ValueKind kind;
  };
  static_assert(sizeof(Value) == 16);

  // A container's payload: the place of its first item in items_, and how many have room there.
  struct Room {
    std::uint32_t begin;
    std::uint32_t capacity;
  };
  static Room roomOf(const Value& container) {
    return {static_cast<std::uint32_t>(container.payload),
            static_cast<std::uint32_t>(container.payload >> 32)};
  }
  static std::uint64_t payloadOf(Room room) {
    return (std::uint64_t{room.capacity} << 32) | room.begin;
  }
  ValueId addValue(Value value);
  Room moveToEnd(Value& container, std::size_t capacity);

  bool isContainer(ValueId id) const { return values_[id].kind >= ValueKind::kList; }

  // A deque does not hold its values twice while it grows. The first are those that are their kind
  // alone.
  std::deque<Value> values_{{0, 0, ValueKind::kNone},
                            {0, 0, ValueKind::kBool},
                            {0, 0, ValueKind::kInt},
                            {0, 0, ValueKind::kWideInt},
                            {0, 0, ValueKind::kFloat}};
  std::vector<ValueId> items_;  // of all containers, and the gaps that those left which moved
  ValueId root_ = 0;
};

}  // namespace cistern::trace
