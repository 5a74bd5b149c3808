#include "interop/trace/torch_fields.hpp"

#include <fmt/format.h>

namespace cistern::trace {
namespace {

constexpr std::size_t kMostFields = 64;  // PyTorch writes about ten; a look-up walks them

}  // namespace

std::optional<ValueId> SnapshotFields::look(const PickleDocument& document, ValueId dict,
                                            std::string_view key, ValueKind kind) const {
  if (document.kind(dict) != ValueKind::kDict) {
    fail(fmt::format("expected a dict, found {}", kindName(document.kind(dict))));
  }
  if (document.items(dict).size() > 2 * kMostFields) {
    fail(fmt::format("expected a dict of at most {} keys", kMostFields));
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

std::optional<ValueId> SnapshotFields::lookIfSound(const PickleDocument& document, ValueId dict,
                                                   std::string_view key, ValueKind kind) {
  const bool is_dict =
      document.kind(dict) == ValueKind::kDict && document.items(dict).size() <= 2 * kMostFields;
  const auto found = is_dict ? document.find(dict, key) : std::nullopt;
  if (found && document.kind(*found) == kind) return found;
  if (!is_dict || (found && document.kind(*found) != ValueKind::kNone)) countOdd(key);
  return std::nullopt;
}

std::optional<std::uint64_t> SnapshotFields::number(const PickleDocument& document, ValueId dict,
                                                    std::string_view key, std::uint64_t most) {
  const std::optional<ValueId> found = lookIfSound(document, dict, key, ValueKind::kInt);
  if (!found) return std::nullopt;
  const std::int64_t value = document.integer(*found);
  if (value >= 0 && static_cast<std::uint64_t>(value) <= most)
    return static_cast<std::uint64_t>(value);
  countOdd(key);
  return std::nullopt;
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
                                      std::string_view key) {
  const std::optional<ValueId> found = lookIfSound(document, dict, key, ValueKind::kString);
  return found ? document.text(*found) : std::string_view();
}

std::vector<std::string> SnapshotFields::notes() const {
  std::vector<std::string> notes;
  for (const auto& [key, count] : odd_) {
    notes.push_back(
        fmt::format("'{}' is not as PyTorch writes it, and counts as unknown: {} time{}.", key,
                    count, count == 1 ? "" : "s"));
  }
  return notes;
}

std::uint32_t SnapshotFields::device(const PickleDocument& document, ValueId dict) const {
  constexpr std::int64_t kMost = 65'535;
  const std::optional<ValueId> found = look(document, dict, "device", ValueKind::kInt);
  const std::int64_t device = found ? document.integer(*found) : 0;
  if (device >= 0 && device <= kMost) return static_cast<std::uint32_t>(device);
  fail(fmt::format("expected 'device' to be the number of a GPU, found {}", device));
}

}  // namespace cistern::trace
