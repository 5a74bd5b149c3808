// The traces of real programs that the benchmarks replay, against what is known of each.
#include "interop/recording/formats/write_trace.hpp"
#include "tests/recording/calls_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::recording::calls {
namespace {

struct Known {
  const char* name;
  std::size_t events;
  std::uint64_t peak_bytes;
  std::size_t streams;
};

const std::vector<Known> kKnown{
    {"gpt2_varlen", 136'199, 44'388'603'136, 1},     {"llama_generate", 958'233, 7'584'589'448, 1},
    {"llama_recompute", 116'046, 22'427'500'680, 1}, {"maskrcnn", 108'701, 24'511'987'382, 1},
    {"streams_prefetch", 12'097, 1'652'555'776, 2},  {"unet_buckets", 41'224, 4'457'483'203, 1},
    {"points3d", 37'195, 3'331'921'552, 1},          {"gnn_sampled", 9'779, 34'114'383'284, 1},
};

std::filesystem::path tracePath(const std::string& name) {
  return std::filesystem::path(CISTERN_SOURCE_DIR) / "bench/traces" / (name + ".trace.gz");
}

TEST_CASE("every recorded trace is read whole", "[long]") {
  for (const Known& known : kKnown) {
    const Recording recording = std::move(readCalls(tracePath(known.name)).recordings.at(0));
    audit(recording);
    const Calls trace = callsOf(recording);
    CHECK(trace.name == known.name);
    CHECK(trace.events.size() == known.events);
    CHECK(trace.peak_requested_bytes == known.peak_bytes);
    CHECK(trace.streams == known.streams);
    CHECK(trace.notes.size() == 1);
  }
}

TEST_CASE("a recorded trace survives being written") {
  const Recording trace = std::move(readCalls(tracePath("streams_prefetch")).recordings.at(0));
  const TemporaryFile file("copy.trace.gz");
  writeTrace(trace, file.path());
  CHECK(readOne(file.path()) == callsOf(trace));
}

}  // namespace
}  // namespace cistern::recording::calls
