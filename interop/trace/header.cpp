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

StreamUses usesIn(const nlohmann::json& object) {
  const auto found = object.find(kUsesKey);
  for (const auto& [uses, text] : kUses) {
    if (found != object.end() && *found == text) return uses;
  }
  return StreamUses::kNotSaid;
}

}  // namespace

std::string headerComment(const Header& header) {
  using nlohmann::json;
  std::string text = fmt::format(
      "{{\"name\": {}", json(header.name).dump(-1, ' ', false, json::error_handler_t::replace));
  for (const auto& [uses, word] : kUses) {
    if (header.stream_uses == uses) text += fmt::format(", \"{}\": \"{}\"", kUsesKey, word);
  }
  return text + "}";
}

std::optional<Header> headerInComment(std::string_view comment) {
  constexpr std::size_t kMost = 64 * kKiB;  // one that nests without end takes a hundredfold
  if (comment.empty() || comment[0] != '{' || comment.size() > kMost) return std::nullopt;
  const auto object = nlohmann::json::parse(comment, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  for (const char* const key : {"name", "workload"}) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string()) continue;
    return Header{found->get<std::string>(), usesIn(object)};
  }
  return std::nullopt;
}

}  // namespace cistern::trace
