#include "interop/recording/failure_facts.hpp"

#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "allocator/base/bytes.hpp"

namespace cistern::recording {
namespace {

using nlohmann::json;

class FactsReader {
 public:
  explicit FactsReader(const trace::ErrorSite& site) : site_(site) {}

  Failure read(const json& object, std::uint64_t requested) {
    Failure failure;
    failure.requested = requested;
    failure.rounded = bytes(object, "rounded");
    failure.limit = bytes(object, "limit");
    failure.device_total = bytes(object, "device_total");
    failure.device_free = bytes(object, "device_free");
    failure.reserved = bytes(object, "reserved");
    failure.allocated = bytes(object, "allocated");
    failure.unused = unused(object);
    failure.advice = text(object, "advice");
    failure.device_error = text(object, "device_error");
    return failure;
  }

 private:
  std::uint64_t bytes(const json& object, const char* key) const {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) return 0;
    if (!found->is_number_unsigned()) site_.fail(typeText(key, "a number of bytes"));
    return found->get<std::uint64_t>();
  }

  std::string text(const json& object, const char* key) const {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) return "";
    if (!found->is_string()) site_.fail(typeText(key, "a string"));
    return found->get<std::string>();
  }

  std::vector<Unused> unused(const json& object) const {
    constexpr std::size_t kMost = 64;  // the reasons are about ten
    std::vector<Unused> read;
    const auto found = object.find("unused");
    if (found == object.end() || found->is_null()) return read;
    if (!found->is_array() || found->size() > kMost)
      site_.fail(typeText("unused", "an array of reasons"));
    for (const json& row : *found) {
      if (!row.is_object()) site_.fail(typeText("unused", "an array of objects"));
      read.push_back({text(row, "why"), bytes(row, "bytes"), bytes(row, "largest")});
    }
    return read;
  }

  static std::string typeText(const char* key, const char* what) {
    return fmt::format("expected \"{}\" of a failed request to be {}", key, what);
  }

  const trace::ErrorSite& site_;
};

}  // namespace

Failure parseFailure(std::string_view text, std::uint64_t requested, const trace::ErrorSite& site) {
  constexpr std::size_t kMost = kMiB;
  if (text.size() > kMost) site.fail("expected a JSON object of at most 1 MiB");
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) {
    site.fail(fmt::format("expected a JSON object, found {}", trace::quoted(text)));
  }
  return FactsReader(site).read(object, requested);
}

}  // namespace cistern::recording
