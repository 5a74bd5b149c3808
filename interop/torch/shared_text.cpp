#include "shared_text.hpp"

#include <sstream>
#include <stdexcept>

namespace cistern_torch {

constexpr const char* kPages = "cistern-pages";

std::string textOf(const cistern::sharing::BlockName& name) {
  return std::string(kPages) + ' ' + name.socket + ' ' + std::to_string(name.key);
}

cistern::sharing::BlockName namedBy(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::string begin;
  cistern::sharing::BlockName name;
  if (!(in >> begin >> name.socket >> name.key) || begin != kPages || textOf(name) != text)
    throw std::runtime_error("cistern: a handle that is not of memory that Cistern has shared");
  return name;
}

}  // namespace cistern_torch
