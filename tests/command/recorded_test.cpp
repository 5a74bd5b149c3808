// Whole recorded programs: the policy torch reserves what PyTorch reserved when the same traces
// were replayed through it on a GPU, cistern no more, and cistern fits where PyTorch did.
#include <iterator>
#include <string>

#include "allocator/base/bytes.hpp"
#include "tests/command/command.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

/// What PyTorch 2.11's allocator reached on an H200.
struct Recorded {
  const char* trace;
  double efficiency;
  double fit;
  double expandable_efficiency;  ///< with expandable_segments:True
  double driver_efficiency;      ///< of cudaMallocAsync, keeping all it takes
};

constexpr Recorded kRecorded[] = {
    {"gpt2_varlen", 0.864, 0.953, 0.961, 0.973},
    {"llama_generate", 0.747, 0.943, 0.955, 0.825},
    {"llama_recompute", 0.553, 0.834, 0.902, 0.958},
    {"maskrcnn", 0.501, 0.924, 0.929, 0.943},
    {"streams_prefetch", 0.775, 0.936, 0.937, 0.947},
    {"unet_buckets", 0.693, 0.921, 0.950, 0.904},
    {"points3d", 0.446, 0.738, 0.873, 0.821},
    {"gnn_sampled", 0.615, 0.927, 0.689, 0.987},
};

/// What it reserved on an H100 for programs that nothing was tuned on.
struct Later {
  const char* trace;
  double efficiency;
  double expandable_efficiency;
};

constexpr Later kLater[] = {
    {"later/llama7b_lora", 0.777, 0.933},
    {"later/mixtral_moe", 0.933, 0.956},
    {"later/vit_static", 0.967, 0.986},
};

std::vector<nlohmann::json> replayRecorded(const std::vector<std::string>& how) {
  std::vector<std::string> args = {"replay", "--device", "sim", "--json"};
  args.insert(args.end(), how.begin(), how.end());
  for (const Recorded& recorded : kRecorded) args.push_back(recordedTrace(recorded.trace));
  const Outcome outcome = runCommand(args);
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  return outcome.rows();
}

}  // namespace

TEST_CASE("torch is as efficient as PyTorch was, and cistern at least as efficient as torch",
          "[long]") {
  const auto rows = replayRecorded({"--policy", "torch-rules,cistern"});
  REQUIRE(rows.size() == 2 * std::size(kRecorded));
  for (std::size_t i = 0; i < std::size(kRecorded); ++i) {
    const auto &torch = rows[2 * i], &cistern = rows[2 * i + 1];
    INFO(kRecorded[i].trace);
    CHECK(torch["trace"] == kRecorded[i].trace);
    CHECK(torch["efficiency"].get<double>() == Catch::Approx(kRecorded[i].efficiency).margin(0.02));
    CHECK(cistern["efficiency"].get<double>() >= torch["efficiency"].get<double>());
  }
}

TEST_CASE("programs that nothing was tuned on are served as well, and the models hold for them",
          "[long]") {
  for (const Later& later : kLater) {
    const Outcome outcome =
        runCommand({"replay", recordedTrace(later.trace), "--device", "sim", "--json", "--policy",
                    "cistern,torch-rules,torch-expandable", "--gpu-lag-us", "10000"});
    const auto rows = outcome.rows();
    REQUIRE(rows.size() == 3);
    const auto cistern = rows[0]["efficiency"].get<double>();
    const auto torch = rows[1]["efficiency"].get<double>();
    const auto expandable = rows[2]["efficiency"].get<double>();
    INFO(later.trace << ": " << cistern << ", " << torch << ", " << expandable);
    CHECK(cistern >= 0.98);
    CHECK(cistern >= expandable - 0.005);
    CHECK(torch == Catch::Approx(later.efficiency).margin(0.005));
    CHECK(expandable == Catch::Approx(later.expandable_efficiency).margin(0.001));
  }
}

TEST_CASE("the model of expandable segments reserves what PyTorch did with them", "[long]") {
  const auto rows = replayRecorded({"--policy", "torch-expandable"});
  REQUIRE(rows.size() == std::size(kRecorded));
  for (std::size_t i = 0; i < std::size(kRecorded); ++i) {
    INFO(kRecorded[i].trace);
    CHECK(rows[i]["efficiency"].get<double>() ==
          Catch::Approx(kRecorded[i].expandable_efficiency).margin(0.002));
  }
}

// On one trace it is off by 0.04: how the driver orders what it looks over is not known.
TEST_CASE("the model of the driver's pool reserves about what the pool did", "[long]") {
  const auto rows = replayRecorded({"--policy", "driver-pool"});
  REQUIRE(rows.size() == std::size(kRecorded));
  for (std::size_t i = 0; i < std::size(kRecorded); ++i) {
    INFO(kRecorded[i].trace);
    const double close = kRecorded[i].trace == std::string("llama_generate") ? 0.04 : 0.015;
    CHECK(rows[i]["efficiency"].get<double>() ==
          Catch::Approx(kRecorded[i].driver_efficiency).margin(close));
  }
}

TEST_CASE("the models hold to the streams' order", "[long]") {
  for (const char* policy : {"torch-expandable", "driver-pool"}) {
    const Outcome outcome =
        runCommand({"replay", "--device", "sim", "--check", "--gpu-lag-us", "2000", "--json",
                    "--policy", policy, recordedTrace("streams_prefetch")});
    INFO(outcome.err);
    CHECK(outcome.status == 0);
  }
}

TEST_CASE("held to a capacity, expandable segments give back what is free") {
  // 60 MiB, then 10 in a page of their own: the 60 have to go for the 50 of another stream.
  const TempFile trace(
      "three.trace",
      TraceText().allocate(60 * kMiB).allocate(10 * kMiB).free(0).allocate(50 * kMiB, 1).text());
  const auto peakUnder = [&](const char* capacity) {
    const Outcome outcome = runCommand({"replay", trace.path(), "--device", "sim", "--json",
                                        "--policy", "torch-expandable", "--capacity", capacity});
    return outcome.status == 0 ? outcome.rows().at(0)["peak_reserved_bytes"].get<std::uint64_t>()
                               : 0;
  };
  CHECK(peakUnder("1GiB") == 140 * kMiB);
  CHECK(peakUnder("120MiB") == 80 * kMiB);
  CHECK(peakUnder("60MiB") == 0);
}

TEST_CASE("cistern serves each program within the capacity that PyTorch needed, but for 1%",
          "[long]") {
  const auto rows = replayRecorded({"--fit"});
  REQUIRE(rows.size() == std::size(kRecorded));
  for (std::size_t i = 0; i < std::size(kRecorded); ++i) {
    INFO(kRecorded[i].trace);
    CHECK(rows[i]["fit"].get<double>() >= kRecorded[i].fit - 0.01);
  }
}

}  // namespace cistern::test
