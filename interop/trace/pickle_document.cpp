#include "interop/trace/pickle_document.hpp"

#include <algorithm>
#include <array>

namespace cistern::trace {

std::string_view kindName(ValueKind kind) {
  constexpr std::array<std::string_view, 11> kNames{
      "None", "bool", "int", "int", "float", "str", "bytes", "list", "tuple", "dict", "set"};
  return kNames[static_cast<std::size_t>(kind)];
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
  values_.push_back(value);
  return static_cast<ValueId>(values_.size() - 1);
}

ValueId PickleDocument::addInteger(std::int64_t value) {
  return addValue({static_cast<std::uint64_t>(value), 0, ValueKind::kInt});
}

ValueId PickleDocument::addText(ValueKind kind, std::string_view text) {
  return addValue({reinterpret_cast<std::uintptr_t>(text.data()),
                   static_cast<std::uint32_t>(text.size()), kind});
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
  const std::size_t length = into.length + items.size();
  Room room = roomOf(into);
  if (length > room.capacity) room = moveToEnd(into, into.length == 0 ? length : 2 * length);
  std::copy(items.begin(), items.end(), items_.begin() + room.begin + into.length);
  into.length = static_cast<std::uint32_t>(length);
}

PickleDocument::Room PickleDocument::moveToEnd(Value& container, std::size_t capacity) {
  const Room from = roomOf(container);
  const Room to{static_cast<std::uint32_t>(items_.size()), static_cast<std::uint32_t>(capacity)};
  items_.resize(to.begin + capacity);
  std::copy_n(items_.begin() + from.begin, container.length, items_.begin() + to.begin);
  container.payload = payloadOf(to);
  return to;
}

}  // namespace cistern::trace
