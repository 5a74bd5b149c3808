#include "torch_texts.hpp"

#include <cstdio>
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

namespace {

constexpr std::uint64_t kExa = std::uint64_t(1) << 60;

// Up to 1,024 of a unit are said in it, and nothing is larger than a GiB.
std::string sizeText(std::uint64_t bytes) {
  if (bytes <= 1024) return std::to_string(bytes) + " bytes";
  double size = double(bytes) / 1024;
  const char* unit = "KiB";
  for (const char* const larger : {"MiB", "GiB"}) {
    if (size <= 1024) break;
    size /= 1024;
    unit = larger;
  }
  char text[48];
  std::snprintf(text, sizeof text, "%.2f %s", size, unit);
  return text;
}

}  // namespace

std::string outOfMemoryText(const Refused& refused) {
  if (refused.requested >= kExa)
    return "CUDA out of memory. Tried to allocate more than 1EB memory.";
  const std::string begin = "CUDA out of memory. Tried to allocate " + sizeText(refused.requested);
  if (refused.of_host) return begin + " of host memory.";
  return begin + ". GPU " + std::to_string(refused.device) + " has a total capacity of " +
         sizeText(refused.total) + " of which " + sizeText(refused.free) + " is free.";
}

}  // namespace cistern_torch
