// The JSON of cistern_snapshot: every segment and block (docs/c-api.md). Living
// blocks become allocations, and segments what is reserved. A pending block is freed and still in
// use. A block that is asleep lives, and has no memory behind it.
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "allocator/base/bytes.hpp"
#include "interop/recording/recording_builder.hpp"
#include "interop/recording/recording_readers.hpp"
#include "interop/trace/text_cursor.hpp"

namespace cistern::recording {
namespace {

using nlohmann::json;

class SnapshotJson final : public trace::ErrorSite {
 public:
  explicit SnapshotJson(const std::string& file) : file_(file), builder_(*this) {}

  Recording read(const json& whole) {
    requireKind(whole, json::value_t::object, "the snapshot", "an object");
    const std::uint64_t version = number(whole, "version");
    if (version != 1) fail(fmt::format("expected version 1, found {}", version));
    builder_.setDevice(text(whole, "device"));
    builder_.setSource(Source::kSnapshot);
    const json& segments = array(whole, "segments");
    for (std::size_t i = 0; i < segments.size(); ++i) {
      place_ = fmt::format("segments[{}]", i);
      readSegment(segments[i]);
    }
    builder_.setFirstRecorded(builder_.soFar().events.size());
    return builder_.finish();
  }

  [[noreturn]] void fail(const std::string& what) const override {
    throw trace::TraceError(file_, place_ + ": " + what);
  }

 private:
  void readSegment(const json& segment) {
    requireKind(segment, json::value_t::object, "a segment", "an object");
    const std::uint64_t address = bits(segment, "address");
    const std::uint64_t bytes = number(segment, "size");
    const std::uint64_t stream = bits(segment, "stream");
    const std::uint32_t pool = poolOf(segment);
    const bool in_pages = isTrue(segment, "in_pages");
    location_ = locationOf(segment);
    if (!in_pages) builder_.memory(EventKind::kReserve, address, bytes, stream, pool);
    const json& blocks = array(segment, "blocks");
    const std::string at = place_;
    std::uint64_t next = address;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      place_ = fmt::format("{}.blocks[{}]", at, i);
      readBlock(blocks[i], pool, in_pages, next);
    }
    place_ = at;
    if (next != address + bytes) fail("expected blocks that cover the segment");
  }

  // `next` is where the block has to lie, and moves past it.
  void readBlock(const json& block, std::uint32_t pool, bool in_pages, std::uint64_t& next) {
    requireKind(block, json::value_t::object, "a block", "an object");
    Place where;
    where.address = bits(block, "address");
    where.pool = pool;
    if (where.address != next) fail(fmt::format("expected a block at address 0x{:x}", next));
    const std::uint64_t bytes = number(block, "size");
    next += bytes;
    const std::uint64_t stream = bits(block, "stream");
    const std::string state = text(block, "state");
    requireState(state);
    const std::uint64_t there =
        bytes - away(block, bytes, state == "unmapped" || state == "asleep");
    if (in_pages) mapBlock(where.address, there, onHost(block, there), stream, pool);
    const std::uint64_t requested = number(block, "requested");
    if (state == "allocated" || state == "asleep") {
      builder_.allocate(requested, stream, where);
    } else if (state == "pending") {
      builder_.free(builder_.allocate(requested > 0 ? requested : bytes, stream, where));
    }
  }

  std::uint64_t away(const json& block, std::uint64_t bytes, bool all) const {
    return block.contains("away") ? part(block, "away", bytes) : all ? bytes : 0;
  }

  std::uint64_t onHost(const json& block, std::uint64_t there) const {
    if (block.contains("on_host")) return part(block, "on_host", there);
    return location_ == Location::kHost ? there : 0;
  }

  std::uint64_t part(const json& block, const char* key, std::uint64_t of) const {
    const std::uint64_t bytes = number(block, key);
    if (bytes > of) fail(fmt::format("expected '{}' to be at most {}, found {}", key, of, bytes));
    return bytes;
  }

  // A snapshot does not tell which part of a block lies where. The device's is shown first, and
  // what is away last.
  void mapBlock(std::uint64_t address, std::uint64_t bytes, std::uint64_t on_host,
                std::uint64_t stream, std::uint32_t pool) {
    const std::uint64_t here = bytes - on_host;
    if (here > 0) builder_.memory(EventKind::kMap, address, here, stream, pool, Location::kDevice);
    if (on_host > 0)
      builder_.memory(EventKind::kMap, address + here, on_host, stream, pool, Location::kHost);
  }

  void requireState(const std::string& state) const {
    for (const char* known : {"allocated", "pending", "free", "unmapped", "asleep"})
      if (state == known) return;
    fail(
        fmt::format("expected 'state' to be allocated, pending, free, unmapped or asleep, found {}",
                    trace::quoted(state)));
  }

  // Snapshots of earlier releases do not have it.
  Location locationOf(const json& segment) const {
    if (!segment.contains("location")) return Location::kDevice;
    const std::string shown = text(segment, "location");
    if (shown == "host") return Location::kHost;
    if (shown == "device") return Location::kDevice;
    fail(fmt::format("expected 'location' to be device or host, found {}", trace::quoted(shown)));
  }

  std::uint32_t poolOf(const json& segment) {
    const json& pair = array(segment, "pool");
    if (pair.size() != 2 || !pair[0].is_number_unsigned() || !pair[1].is_number_unsigned()) {
      fail("expected 'pool' to be two numbers");
    }
    return builder_.pool({pair[0].get<std::uint64_t>(), pair[1].get<std::uint64_t>()});
  }

  // ---- Fields ----

  void requireKind(const json& value, json::value_t kind, const char* what,
                   const char* expected) const {
    if (value.type() != kind) {
      fail(fmt::format("expected {} to be {}, found {}", what, expected, value.type_name()));
    }
  }

  const json& field(const json& object, const char* key) const {
    const auto found = object.find(key);
    if (found == object.end()) fail(fmt::format("expected '{}', found none", key));
    return *found;
  }

  const json& array(const json& object, const char* key) const {
    const json& value = field(object, key);
    requireKind(value, json::value_t::array, key, "an array");
    return value;
  }

  std::uint64_t number(const json& object, const char* key) const {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 60;
    const json& value = field(object, key);
    requireKind(value, json::value_t::number_unsigned, key, "a number from 0");
    const auto read = value.get<std::uint64_t>();
    if (read > kMost) fail(fmt::format("expected '{}' to be at most 2^60, found {}", key, read));
    return read;
  }

  std::string text(const json& object, const char* key) const {
    const json& value = field(object, key);
    requireKind(value, json::value_t::string, key, "a string");
    return value.get<std::string>();
  }

  bool isTrue(const json& object, const char* key) const {
    const json& value = field(object, key);
    requireKind(value, json::value_t::boolean, key, "true or false");
    return value.get<bool>();
  }

  // An address or a stream: "0x10000000000".
  std::uint64_t bits(const json& object, const char* key) const {
    const std::string shown = text(object, key);
    std::optional<std::uint64_t> value;
    if (shown.starts_with("0x")) value = trace::wholeNumber(std::string_view(shown).substr(2), 16);
    if (!value) {
      fail(fmt::format("expected '{}' to be hexadecimal, as in \"0x10\", found {}", key,
                       trace::quoted(shown)));
    }
    return *value;
  }

  const std::string& file_;
  std::string place_ = "the snapshot";
  Location location_ = Location::kDevice;  ///< of the segment that is being read
  RecordingBuilder builder_;
};

/// Stops where a file nests deeper than a snapshot does: such a value takes many times its text.
bool isShallow(int depth, json::parse_event_t, json&) {
  constexpr int kMost = 8;
  if (depth > kMost) throw json::other_error::create(0, "too deep", nullptr);
  return true;
}

}  // namespace

Recording readSnapshot(std::string_view content, const std::string& file) {
  constexpr std::size_t kMost = 256 * kMiB;  // a parsed one takes ten times its text
  if (content.size() > kMost) throw trace::TraceError(file, "is longer than 256 MiB");
  json whole;
  try {
    whole = json::parse(content, isShallow);
  } catch (const json::parse_error& error) {
    throw trace::TraceError(file, error.byte, "expected JSON, found something else");
  } catch (const json::exception&) {
    throw trace::TraceError(file, "nests deeper than a snapshot does");
  }
  return SnapshotJson(file).read(whole);
}

}  // namespace cistern::recording
