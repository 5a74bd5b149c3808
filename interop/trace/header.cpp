#include "interop/trace/header.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "allocator/base/bytes.hpp"

namespace cistern::trace {
namespace {

constexpr const char* kUsesKey = "stream_uses";

constexpr std::array<std::pair<StreamUses, const char*>, 2> kUses = {
    {{StreamUses::kRecorded, "recorded"}, {StreamUses::kMissing, "missing"}}};

std::optional<StreamUses> usesNamed(const nlohmann::json& value) {
  for (const auto& [uses, text] : kUses) {
    if (value == text) return uses;
  }
  return std::nullopt;
}

}  // namespace

std::string headerComment(const Header& header) {
  using nlohmann::json;
  std::string text = fmt::format(
      "{{\"name\": {}",
      json(header.name.value_or("")).dump(-1, ' ', false, json::error_handler_t::replace));
  for (const auto& [uses, word] : kUses) {
    if (header.stream_uses == uses) text += fmt::format(", \"{}\": \"{}\"", kUsesKey, word);
  }
  return text + "}";
}

std::optional<Header> headerInComment(std::string_view comment,
                                      const std::function<void()>& on_bad_uses) {
  constexpr std::size_t kMost = 64 * kKiB;  // one that nests without end takes a hundredfold
  const std::size_t start = comment.find_first_not_of(" \t");
  if (start == std::string_view::npos || comment[start] != '{' || comment.size() > kMost)
    return std::nullopt;
  const auto object = nlohmann::json::parse(comment, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  Header header;
  for (const char* const key : {"workload", "name"}) {
    const auto found = object.find(key);
    if (found != object.end() && found->is_string()) header.name = found->get<std::string>();
  }
  const auto uses = object.find(kUsesKey);
  if (uses != object.end()) {
    const std::optional<StreamUses> known = usesNamed(*uses);
    if (!known) on_bad_uses();
    header.stream_uses = known.value_or(StreamUses::kNotSaid);
  }
  if (!header.name && uses == object.end()) return std::nullopt;
  return header;
}

}  // namespace cistern::trace
