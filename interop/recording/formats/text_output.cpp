#include "interop/recording/formats/text_output.hpp"

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

namespace cistern::recording {

void TextOutput::json(std::string_view text) {
  const auto plain = [](char c) {
    return static_cast<unsigned char>(c) >= ' ' && c != '"' && c != '\\';
  };
  if (std::all_of(text.begin(), text.end(), plain)) {
    add("\"");
    add(text);
    add("\"");
  } else {
    using nlohmann::json;
    add(nlohmann::json(std::string(text)).dump(-1, ' ', false, json::error_handler_t::replace));
  }
}

}  // namespace cistern::recording
