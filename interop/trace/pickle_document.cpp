#include "interop/trace/pickle_document.hpp"

#include <array>
#include <utility>

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
  return containers_[values_[id].payload];
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

ValueId PickleDocument::add(ValueKind kind) {
  values_.push_back({0, 0, kind});
  return static_cast<ValueId>(values_.size() - 1);
}

ValueId PickleDocument::addInteger(std::int64_t value) {
  const ValueId id = add(ValueKind::kInt);
  values_[id].payload = static_cast<std::uint64_t>(value);
  return id;
}

ValueId PickleDocument::addText(ValueKind kind, std::string_view text) {
  const ValueId id = add(kind);
  values_[id].payload = reinterpret_cast<std::uintptr_t>(text.data());
  values_[id].length = static_cast<std::uint32_t>(text.size());
  return id;
}

ValueId PickleDocument::addContainer(ValueKind kind, std::vector<ValueId> items) {
  const ValueId id = add(kind);
  values_[id].payload = containers_.size();
  containers_.push_back(std::move(items));
  return id;
}

void PickleDocument::extend(ValueId id, std::vector<ValueId> items) {
  std::vector<ValueId>& into = containers_[values_[id].payload];
  if (into.empty()) {
    into = std::move(items);  // the usual case: filled once, and then exactly as large as needed
  } else {
    into.insert(into.end(), items.begin(), items.end());
  }
}

}  // namespace cistern::trace
