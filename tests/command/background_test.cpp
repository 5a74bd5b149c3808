// What is done beside the program, and with pages: kept apart from what the program waits for.
#include <numeric>

#include "allocator/base/bytes.hpp"
#include "allocator/device/background_account.hpp"
#include "allocator/device/sim/sim_device.hpp"
#include "interop/command/replay/meter.hpp"
#include "tests/command/command.hpp"
#include "tests/support/catch.hpp"

using Catch::Matchers::ContainsSubstring;

namespace cistern::test {
namespace {

const std::string kTwoBlocks =
    TraceText().allocate(40 * kMiB).free(0).allocate(30 * kMiB).free(1).text();

std::uint64_t sumOf(const nlohmann::json& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t(0),
                         [](std::uint64_t sum, const auto& value) {
                           return sum + value.template get<std::uint64_t>();
                         });
}

}  // namespace

TEST_CASE("the meter keeps the background's calls apart, and adds both up for each round") {
  sim::SimDevice device;
  command::Meter meter(device);
  const auto calls = [&] { return meter.bill().callersCalls(); };
  const auto query = [&] { (void)device.memoryInfo(); };
  constexpr auto kQuery = std::size_t(Call::kMemoryInfo);

  query();  // before the first round, so on no bill
  meter.start();
  query();
  meter.stop(1);
  const std::uint64_t price = meter.bill().modelled_ns;
  CHECK(calls()[kQuery] == 1);
  CHECK(price > 0);

  query();  // between two rounds
  meter.start();
  {
    const BackgroundAccount background;
    query();
    query();
  }
  query();
  meter.stop(1);
  CHECK(calls()[kQuery] == 2);
  CHECK(meter.bill().background_calls[kQuery] == 2);
  CHECK(meter.bill().modelled_ns == 2 * price);
  CHECK(meter.bill().modelled_background_ns == 2 * price);
  CHECK(meter.callsByRound() == std::vector<std::uint64_t>{1, 3});
}

TEST_CASE("a background call that one of two counts has missed is no call of the program's") {
  command::DeviceBill bill;
  bill.all_calls[0] = 1;
  bill.background_calls[0] = 2;
  CHECK(bill.callersCalls()[0] == 0);
}

TEST_CASE("the calls of all rounds are those of the program and of the background") {
  const TempFile trace("two.trace", kTwoBlocks);
  for (const char* policy : {"cistern", "torch-rules", "direct"}) {
    const auto row = runCommand({"replay", trace.path(), "--device", "sim", "--json", "--policy",
                                 policy, "--repeat", "3"})
                         .rows()
                         .at(0);
    INFO(row);
    REQUIRE(row["calls_by_round"].size() == 3);
    CHECK(sumOf(row["calls_by_round"]) ==
          sumOf(row["device_calls"]) + sumOf(row["background_calls"]));
    CHECK(row["calls_by_round"][0] >= row["calls_by_round"][2]);
  }
}

TEST_CASE("a row counts pages, and a policy without pages has none") {
  const TempFile trace("two.trace", kTwoBlocks);
  const auto rows = runCommand({"replay", trace.path(), "--device", "sim", "--json", "--policy",
                                "cistern,torch-rules,direct"})
                        .rows();
  REQUIRE(rows.size() == 3);
  const nlohmann::json none = {{"created", 0}, {"recycled", 0}, {"revived", 0},
                               {"retired", 0}, {"returned", 0}, {"freezes", 0}};
  for (const auto& [kind, count] : none.items()) {
    INFO(kind);
    CHECK(rows[0]["pages"].at(kind).is_number_unsigned());
  }
  CHECK(rows[1]["pages"] == none);
  CHECK(rows[2]["pages"] == none);
  CHECK(rows[2]["background_calls"] == nlohmann::json::object());
  CHECK(rows[2]["modelled_background_ms"] == 0.0);
}

TEST_CASE("CSV ends with the background and the pages") {
  const TempFile trace("two.trace", kTwoBlocks);
  const Outcome outcome =
      runCommand({"replay", trace.path(), "--device", "sim", "--csv", "--policy", "direct"});
  CHECK_THAT(outcome.out,
             ContainsSubstring(",host_bytes_peak,background_calls,modelled_background_ms,"
                               "pages.created,pages.recycled,pages.revived,pages.retired,"
                               "pages.returned,pages.freezes,"));
  CHECK_THAT(outcome.out, ContainsSubstring(",0,0,0,0,0,0,0,0,0,false,"));
}

TEST_CASE("a replay on the simulated device comes out the same each time") {
  const auto figures = [] {
    auto row =
        runCommand({"replay", recordedTrace("streams_prefetch"), "--device", "sim", "--json",
                    "--gpu-lag-us", "300", "--repeat", "2", "--conf", "background_thread:true"})
            .rows()
            .at(0);
    row.erase("ns_per_event");
    return row;
  };
  const auto first = figures();
  CHECK(first["ok"] == true);
  CHECK(figures() == first);
}

}  // namespace cistern::test
