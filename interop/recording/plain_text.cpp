#include "interop/recording/plain_text.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace cistern::recording {

std::string plainText(std::string text) {
  using nlohmann::json;
  const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(text.begin(), text.end(), ascii)) return text;
  const std::string valid =
      json(std::move(text)).dump(-1, ' ', false, json::error_handler_t::replace);
  return json::parse(valid).get<std::string>();
}

}  // namespace cistern::recording
