#include "interop/trace/pickle_document.hpp"

#include <algorithm>
#include <array>
#include <functional>

namespace cistern::trace {

std::string_view kindName(ValueKind kind) {
  constexpr std::array<std::string_view, 12> kNames{"None",  "bool", "int",   "int",
                                                    "float", "str",  "bytes", "list",
                                                    "tuple", "dict", "set",   "entry"};
  return kNames[static_cast<std::size_t>(kind)];
}

// The first are those that are their kind alone.
PickleDocument::Values::Values() {
  for (const ValueKind kind : {ValueKind::kNone, ValueKind::kBool, ValueKind::kInt,
                               ValueKind::kWideInt, ValueKind::kFloat, ValueKind::kTaken}) {
    push_back({0, 0, kind, true});
  }
  push_back({1, 0, ValueKind::kBool, true});
}

std::string_view PickleDocument::text(ValueId id) const {
  const auto* begin = reinterpret_cast<const char*>(values_[id].payload);
  return {begin, values_[id].length};
}

std::span<const ValueId> PickleDocument::items(ValueId id) const {
  if (!isContainer(id)) return {};
  return {items_.data() + roomOf(values_[id]).begin, values_[id].length};
}

std::optional<ValueId> PickleDocument::find(ValueId dict, std::string_view key) const {
  const std::span<const ValueId> pairs = items(dict);
  // From the back: of a key set twice, the later value holds.
  for (std::size_t i = pairs.size() / 2; i-- > 0;) {
    const ValueId candidate = pairs[2 * i];
    if (kind(candidate) == ValueKind::kString && text(candidate) == key) return pairs[2 * i + 1];
  }
  return std::nullopt;
}

ValueId PickleDocument::addValue(Value value) {
  if (!free_values_.empty()) {
    const ValueId id = free_values_.back();
    free_values_.pop_back();
    values_[id] = value;
    return id;
  }
  values_.push_back(value);
  return static_cast<ValueId>(values_.size() - 1);
}

ValueId PickleDocument::addInteger(std::int64_t value) {
  return addValue({static_cast<std::uint64_t>(value), 0, ValueKind::kInt});
}

ValueId PickleDocument::addText(ValueKind kind, std::string_view of) {
  ValueId& recent = recent_texts_[std::hash<std::string_view>()(of) % kRecentTexts];
  if (values_[recent].kind == kind && text(recent) == of) return recent;
  const std::string_view kept = keep(of);
  return recent = addValue({reinterpret_cast<std::uintptr_t>(kept.data()),
                            static_cast<std::uint32_t>(kept.size()), kind, true});
}

std::string_view PickleDocument::keep(std::string_view text) {
  constexpr std::size_t kBlock = 4096;
  if (texts_.empty() || texts_.back().capacity() - texts_.back().size() < text.size()) {
    texts_.emplace_back().reserve(std::max(kBlock, text.size()));
    text_bytes_ += texts_.back().capacity() + sizeof(std::string);
  }
  std::string& block = texts_.back();
  block += text;
  return std::string_view(block).substr(block.size() - text.size());
}

ValueId PickleDocument::addContainer(ValueKind kind, std::span<const ValueId> items) {
  const ValueId id = addValue({0, 0, kind});
  extend(id, items);
  return id;
}

// Most containers are filled once, and get exactly the room that they need. Those that are filled
// again and again get twice that.
void PickleDocument::extend(ValueId id, std::span<const ValueId> items) {
  Value& into = values_[id];
  into.seen = false;
  const std::size_t length = into.length + items.size();
  Room room = roomOf(into);
  if (length > room.capacity) room = move(into, into.length == 0 ? length : 2 * length);
  std::copy(items.begin(), items.end(), items_.begin() + room.begin + into.length);
  into.length = static_cast<std::uint32_t>(length);
}

PickleDocument::Room PickleDocument::move(Value& container, std::size_t capacity) {
  const Room from = roomOf(container);
  const Room to = makeRoom(capacity);
  std::copy_n(items_.begin() + from.begin, container.length, items_.begin() + to.begin);
  container.payload = payloadOf(to);
  freeRoom(from);
  return to;
}

PickleDocument::Room PickleDocument::makeRoom(std::size_t capacity) {
  Room made{0, static_cast<std::uint32_t>(capacity)};
  if (capacity <= kMostReused && !free_rooms_[capacity].empty()) {
    made.begin = free_rooms_[capacity].back();
    free_rooms_[capacity].pop_back();
    return made;
  }
  made.begin = static_cast<std::uint32_t>(items_.size());
  items_.resize(items_.size() + capacity);
  return made;
}

void PickleDocument::freeRoom(Room room) {
  if (room.capacity == 0 || room.capacity > kMostReused) return;
  std::vector<std::uint32_t>& rooms = free_rooms_[room.capacity];
  const std::size_t before = rooms.capacity();
  rooms.push_back(room.begin);
  free_bytes_ += (rooms.capacity() - before) * sizeof(std::uint32_t);
}

void PickleDocument::take(ValueId id, std::uint32_t number) {
  for (const ValueId item : items(id)) {
    // The values that are their kind alone are all shared.
    const bool own = values_[item].kind == ValueKind::kInt && !values_[item].shared;
    if (!own) continue;
    values_[item].shared = true;  // an item that stands in it twice is freed once
    const std::size_t before = free_values_.capacity();
    free_values_.push_back(item);
    free_bytes_ += (free_values_.capacity() - before) * sizeof(ValueId);
  }
  Value& taken = values_[id];
  freeRoom(roomOf(taken));
  taken.payload = number;
  taken.length = 0;
  taken.kind = ValueKind::kTaken;
}

}  // namespace cistern::trace
