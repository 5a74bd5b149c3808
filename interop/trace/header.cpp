#include "interop/trace/header.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "allocator/base/bytes.hpp"

namespace cistern::trace {

std::string nameComment(std::string_view name) {
  using nlohmann::json;
  return fmt::format("{{\"name\": {}}}",
                     json(name).dump(-1, ' ', false, json::error_handler_t::replace));
}

std::optional<std::string> nameInComment(std::string_view comment) {
  constexpr std::size_t kMost = 64 * kKiB;  // one that nests without end takes a hundredfold
  if (comment.empty() || comment[0] != '{' || comment.size() > kMost) return std::nullopt;
  const auto object = nlohmann::json::parse(comment, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  for (const char* const key : {"name", "workload"}) {
    const auto found = object.find(key);
    if (found != object.end() && found->is_string()) return found->get<std::string>();
  }
  return std::nullopt;
}

}  // namespace cistern::trace
