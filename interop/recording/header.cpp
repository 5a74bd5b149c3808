#include "interop/recording/header.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "allocator/base/bytes.hpp"
#include "interop/trace/text_cursor.hpp"

namespace cistern::recording {
namespace {

using nlohmann::json;
using OnBad = std::function<void(const std::string&)>;

constexpr const char* kUsesKey = "stream_uses";

constexpr std::array<std::pair<StreamUses, const char*>, 2> kUses = {
    {{StreamUses::kRecorded, "recorded"}, {StreamUses::kMissing, "missing"}}};

std::optional<StreamUses> usesNamed(const json& value) {
  for (const auto& [uses, text] : kUses) {
    if (value == text) return uses;
  }
  return std::nullopt;
}

// ---- Reading ----

void readUses(const json& object, Header& header, const OnBad& on_bad) {
  const auto uses = object.find(kUsesKey);
  if (uses == object.end()) return;
  const std::optional<StreamUses> known = usesNamed(*uses);
  if (!known) on_bad("expected \"stream_uses\" to be \"recorded\" or \"missing\"");
  header.stream_uses = known.value_or(StreamUses::kNotSaid);
}

std::optional<std::uint64_t> streamName(const json& value) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (!value.is_string()) return std::nullopt;
  std::string_view text = value.get_ref<const std::string&>();
  if (!text.starts_with("0x")) return std::nullopt;
  return trace::wholeNumber(text.substr(2), 16);
}

void readStreamNames(const json& names, Header& header, const OnBad& on_bad) {
  const char* const expected =
      "expected \"stream_names\" to be an object such as {\"1\": \"0x7f3c\"}";
  if (!names.is_object()) return on_bad(expected);
  for (const auto& [key, value] : names.items()) {
    const auto number = trace::wholeNumber(key);
    const auto name = streamName(value);
    if (!number || !name) return on_bad(expected);
    header.stream_names[*number] = *name;
  }
}

void readRecording(const json& object, Header& header, const OnBad& on_bad) {
  if (!object.contains("recording")) return;
  if (object["recording"] != kRecordingVersion) {
    return on_bad(fmt::format(
        "expected \"recording\" to be {}, the version that this release reads", kRecordingVersion));
  }
  header.recording = true;
  if (const auto at = object.find("device"); at != object.end()) {
    if (!at->is_string()) return on_bad("expected \"device\" to be a string");
    header.device = at->get<std::string>();
  }
  if (const auto at = object.find("first_recorded"); at != object.end()) {
    if (!at->is_number_unsigned()) return on_bad("expected \"first_recorded\" to be a number");
    header.first_recorded = at->get<std::uint64_t>();
  }
  if (const auto at = object.find("dump"); at != object.end()) {
    if (!at->is_boolean()) return on_bad("expected \"dump\" to be true or false");
    header.dump = at->get<bool>();
  }
  if (const auto at = object.find("stream_names"); at != object.end()) {
    readStreamNames(*at, header, on_bad);
  }
}

}  // namespace

std::string_view wordFor(StreamUses uses) {
  for (const auto& [known, word] : kUses) {
    if (known == uses) return word;
  }
  return "";
}

std::optional<Header> headerInComment(std::string_view comment, const OnBad& on_bad) {
  constexpr std::size_t kMost = 64 * kKiB;  // one that nests without end takes a hundredfold
  const std::size_t start = comment.find_first_not_of(" \t");
  if (start == std::string_view::npos || comment[start] != '{' || comment.size() > kMost)
    return std::nullopt;
  const auto object = json::parse(comment, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  Header header;
  for (const char* const key : {"workload", "name"}) {
    const auto found = object.find(key);
    if (found != object.end() && found->is_string()) header.name = found->get<std::string>();
  }
  readUses(object, header, on_bad);
  readRecording(object, header, on_bad);
  if (!header.name && !header.recording && !object.contains(kUsesKey)) return std::nullopt;
  return header;
}

}  // namespace cistern::recording
