// The contents of a pickle, as plain data in one arena. Values are named by index, so sharing and
// cycles in the pickle cost nothing here, and tearing it down needs no recursion. Read next:
// pickle_machine.hpp, which fills it.
//
// A reader may take a container out as soon as it is complete: see `take`. Then the memory of what
// it held serves what comes next, so a list of millions of dicts takes no more than the reader
// keeps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
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
  kTaken,  ///< a container that a reader has taken out; it stands for a number of the reader's
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
  /// Whether it is True.
  bool isTrue(ValueId id) const {
    return values_[id].kind == ValueKind::kBool && values_[id].payload != 0;
  }
  /// Pre: kind is kString or kBytes. Escapes of protocol 0 stay as they are written.
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

  /// Says that more than one place may name the value from now on.
  void share(ValueId id) { values_[id].shared = true; }
  /// Makes a container a kTaken that stands for `number`. Its ints that no other place names are
  /// freed, with the room for its items. Pre: `id` is a container.
  void take(ValueId id, std::uint32_t number);
  /// The value True; that of add(kBool) is False.
  static constexpr ValueId kTrue = 6;
  /// What a list has in the place of an item that a reader took while it was appended.
  static constexpr ValueId kTakenItem = 5;
  /// Counts memory of the reader's for what it has taken: it falls under the pickle's limit, too.
  void charge(std::size_t bytes) { charged_bytes_ += bytes; }
  /// The number that a kTaken stands for. Pre: kind is kTaken.
  std::uint32_t takenAs(ValueId id) const {
    return static_cast<std::uint32_t>(values_[id].payload);
  }
  /// A mark that a reader leaves on a dict: it has looked at it and does not take it. Adding to the
  /// dict removes the mark.
  void markSeen(ValueId id) { values_[id].seen = true; }
  bool isSeen(ValueId id) const { return values_[id].seen; }

  /// The items of all containers, and the gaps between them.
  std::size_t itemCount() const { return items_.size(); }
  /// The memory that this takes.
  std::size_t bytes() const {
    return values_.size() * sizeof(Value) + items_.capacity() * sizeof(ValueId) + text_bytes_ +
           free_bytes_ + charged_bytes_;
  }

 private:
  struct Value {
    std::uint64_t payload;  // an int; where a text begins; where a container's items begin
    std::uint32_t length;   // of a text, or of a container in items
    ValueKind kind;
    bool shared = false;  ///< more than one place may name it
    bool seen = false;    ///< see markSeen
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
  Room move(Value& container, std::size_t capacity);
  Room makeRoom(std::size_t capacity);
  void freeRoom(Room room);
  std::string_view keep(std::string_view text);

  bool isContainer(ValueId id) const {
    return values_[id].kind >= ValueKind::kList && values_[id].kind <= ValueKind::kSet;
  }

  // Values in blocks, which never move: what grows does not hold them twice.
  class Values {
   public:
    Values();
    const Value& operator[](ValueId id) const { return blocks_[id / kBlock][id % kBlock]; }
    Value& operator[](ValueId id) { return blocks_[id / kBlock][id % kBlock]; }
    std::size_t size() const { return size_; }
    void push_back(const Value& value) {
      if (size_ % kBlock == 0) blocks_.push_back(std::make_unique<Value[]>(kBlock));
      blocks_.back()[size_++ % kBlock] = value;
    }

   private:
    static constexpr std::size_t kBlock = 1024;
    std::vector<std::unique_ptr<Value[]>> blocks_;
    std::size_t size_ = 0;
  };

  Values values_;
  std::vector<ValueId> items_;  // of all containers, and the gaps that those left which moved

  static constexpr std::size_t kMostReused = 128;
  std::vector<ValueId> free_values_;
  // Gaps in items_ of so many items each; longer ones are not reused.
  std::array<std::vector<std::uint32_t>, kMostReused + 1> free_rooms_;
  std::size_t free_bytes_ = 0;  // that the two above take

  // Equal texts that come soon after one another share a value.
  static constexpr std::size_t kRecentTexts = 1024;
  std::vector<ValueId> recent_texts_ = std::vector<ValueId>(kRecentTexts);
  std::deque<std::string> texts_;  // each grows within its first room, so its characters stay
  std::size_t text_bytes_ = 0;
  std::size_t charged_bytes_ = 0;
  ValueId root_ = 0;
};

}  // namespace cistern::trace
