#include "interop/trace/torch_fields.hpp"

#include <fmt/format.h>

namespace cistern::trace {

std::optional<ValueId> SnapshotFields::look(const PickleDocument& document, ValueId dict,
                                            std::string_view key, ValueKind kind) const {
  constexpr std::size_t kMostKeys = 64;  // PyTorch writes about ten; a look-up walks them
  if (document.kind(dict) != ValueKind::kDict) {
    fail(fmt::format("expected a dict, found {}", kindName(document.kind(dict))));
  }
  if (document.items(dict).size() > 2 * kMostKeys) {
    fail(fmt::format("expected a dict of at most {} keys", kMostKeys));
  }
  const std::optional<ValueId> found = document.find(dict, key);
  if (!found || document.kind(*found) == ValueKind::kNone) return std::nullopt;
  if (kind == ValueKind::kInt && document.kind(*found) == ValueKind::kWideInt) {
    fail(fmt::format("expected '{}' to be an int below 2^63, found a larger one", key));
  }
  if (document.kind(*found) != kind) {
    fail(fmt::format("expected '{}' to be {}, found {}", key, kindName(kind),
                     kindName(document.kind(*found))));
  }
  return found;
}

ValueId SnapshotFields::require(const PickleDocument& document, ValueId dict, std::string_view key,
                                ValueKind kind) const {
  const std::optional<ValueId> found = look(document, dict, key, kind);
  if (!found) fail(fmt::format("expected '{}' to be {}, found none", key, kindName(kind)));
  return *found;
}

std::optional<std::int64_t> SnapshotFields::optionalInteger(const PickleDocument& document,
                                                            ValueId dict,
                                                            std::string_view key) const {
  const std::optional<ValueId> found = look(document, dict, key, ValueKind::kInt);
  return found ? std::optional(document.integer(*found)) : std::nullopt;
}

std::uint64_t SnapshotFields::bits(const PickleDocument& document, ValueId dict,
                                   std::string_view key) const {
  return static_cast<std::uint64_t>(
      document.integer(require(document, dict, key, ValueKind::kInt)));
}

std::uint64_t SnapshotFields::byteCount(const PickleDocument& document, ValueId dict,
                                        std::string_view key) const {
  const auto value = static_cast<std::int64_t>(bits(document, dict, key));
  if (value < 0) fail(fmt::format("expected '{}' to be a size in bytes, found {}", key, value));
  return static_cast<std::uint64_t>(value);
}

std::string_view SnapshotFields::text(const PickleDocument& document, ValueId dict,
                                      std::string_view key) const {
  const std::optional<ValueId> found = look(document, dict, key, ValueKind::kString);
  return found ? document.text(*found) : std::string_view();
}

std::uint32_t SnapshotFields::device(const PickleDocument& document, ValueId dict) const {
  constexpr std::int64_t kMost = 65'535;
  const std::int64_t device = optionalInteger(document, dict, "device").value_or(0);
  if (device >= 0 && device <= kMost) return static_cast<std::uint32_t>(device);
  fail(fmt::format("expected 'device' to be the number of a GPU, found {}", device));
}

}  // namespace cistern::trace
