// Whole recorded programs: the policy torch reserves what PyTorch reserved when the same traces
// were replayed through it on a GPU, cistern no more, and cistern fits where PyTorch did.
#include <iterator>

#include "tests/command/command.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

/// What PyTorch 2.11's allocator reached on an H200.
struct Recorded {
  const char* trace;
  double efficiency;
  double fit;
};

constexpr Recorded kRecorded[] = {
    {"gpt2_varlen", 0.864, 0.953},      {"llama_generate", 0.747, 0.943},
    {"llama_recompute", 0.553, 0.834},  {"maskrcnn", 0.501, 0.924},
    {"streams_prefetch", 0.775, 0.936}, {"unet_buckets", 0.693, 0.921},
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
          "[one-thread]") {
  const auto rows = replayRecorded({"--policy", "torch,cistern"});
  REQUIRE(rows.size() == 2 * std::size(kRecorded));
  for (std::size_t i = 0; i < std::size(kRecorded); ++i) {
    const auto &torch = rows[2 * i], &cistern = rows[2 * i + 1];
    INFO(kRecorded[i].trace);
    CHECK(torch["trace"] == kRecorded[i].trace);
    CHECK(torch["efficiency"].get<double>() == Catch::Approx(kRecorded[i].efficiency).margin(0.02));
    CHECK(cistern["efficiency"].get<double>() >= torch["efficiency"].get<double>());
  }
}

TEST_CASE("cistern serves each program within the capacity that PyTorch needed, but for 1%",
          "[one-thread]") {
  const auto rows = replayRecorded({"--fit"});
  REQUIRE(rows.size() == std::size(kRecorded));
  for (std::size_t i = 0; i < std::size(kRecorded); ++i) {
    INFO(kRecorded[i].trace);
    CHECK(rows[i]["fit"].get<double>() >= kRecorded[i].fit - 0.01);
  }
}

}  // namespace cistern::test
