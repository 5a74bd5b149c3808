// A snapshot as JSON.
#include <iterator>

#include <fmt/format.h>

#include "allocator/base/text.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

const char* blockUseName(BlockUse use) {
  static constexpr const char* kNames[] = {"allocated", "pending", "free", "unmapped", "asleep"};
  return kNames[std::size_t(use)];
}

// Addresses and streams are text: readers that know numbers as doubles would round them.
std::string snapshotJson(const Snapshot& snapshot) {
  std::string text =
      fmt::format(R"({{"version":1,"device":{},"segments":[)", quotedJson(snapshot.device));
  const auto end = std::back_inserter(text);
  for (const SnapshotSegment& of : snapshot.segments) {
    fmt::format_to(end,
                   R"({}{{"address":"{:#x}","size":{},"kind":"{}","in_pages":{},"location":"{}",)",
                   &of == &snapshot.segments.front() ? "\n" : ",\n", of.address, of.bytes,
                   of.kind == SizeKind::kSmall ? "small" : "large", of.in_pages,
                   of.location == Location::kHost ? "host" : "device");
    fmt::format_to(end, R"("pool":[{},{}],"stream":"{:#x}","blocks":[)", of.pool.uuid, of.pool.uid,
                   of.stream.raw);
    for (const SnapshotBlock& block : of.blocks) {
      fmt::format_to(
          end, R"({}{{"address":"{:#x}","size":{},"requested":{},"state":"{}","stream":"{:#x}")",
          &block == &of.blocks.front() ? "\n" : ",\n", block.address, block.bytes, block.requested,
          blockUseName(block.use), block.stream.raw);
      const bool has_memory = block.away < block.bytes;
      const bool says = block.on_host > 0 || (has_memory && of.location == Location::kHost);
      if (says) fmt::format_to(end, R"(,"on_host":{})", block.on_host);
      const bool sleeps = block.use == BlockUse::kUnmapped || block.use == BlockUse::kAsleep;
      if (block.away != (sleeps ? block.bytes : 0))
        fmt::format_to(end, R"(,"away":{})", block.away);
      text += '}';
    }
    text += "]}";
  }
  return text += "]}\n";
}

}  // namespace cistern
