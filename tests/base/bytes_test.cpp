#include "allocator/base/bytes.hpp"

#include "cistern/error.hpp"
#include "tests/support/catch.hpp"

namespace cistern {
namespace {

TEST_CASE("rounding reaches the next multiple and keeps what is one") {
  CHECK(roundUp(0, 512) == 0);
  CHECK(roundUp(1, 512) == 512);
  CHECK(roundUp(512, 512) == 512);
  CHECK(roundUp(513, 512) == 1024);
  CHECK(roundDown(1023, 512) == 512);
  CHECK(roundDown(511, 512) == 0);
}

TEST_CASE("sizes print in the unit that suits them") {
  CHECK(formatBytes(0) == "0 B");
  CHECK(formatBytes(1023) == "1023 B");
  CHECK(formatBytes(1536) == "1.50 KiB");
  CHECK(formatBytes(20 * kMiB) == "20.00 MiB");
  CHECK(formatBytes(kTiB * 1024) == "1.00 PiB");
  CHECK(formatBytes(~std::uint64_t{0}) == "16.00 EiB");
}

TEST_CASE("sizes are read with and without a unit") {
  CHECK(parseBytes("0") == 0);
  CHECK(parseBytes("4096") == 4096);
  CHECK(parseBytes("512 B") == 512);
  CHECK(parseBytes("20M") == 20 * kMiB);
  CHECK(parseBytes("20MiB") == 20 * kMiB);
  CHECK(parseBytes(" 80 GB ") == 80 * kGiB);
  CHECK(parseBytes("1.5g") == kGiB + kGiB / 2);
  CHECK(parseBytes("2T") == 2 * kTiB);
}

TEST_CASE("what is no size is refused by name") {
  const auto* text =
      GENERATE("", " ", "M", "-1", "1X", "1MM", "nan", "inf", "1 2", "9999999T", "1e30");
  CHECK_THROWS_AS(parseBytes(text), InvalidArgument);
  CHECK_THROWS_WITH(parseBytes(text),
                    Catch::Matchers::ContainsSubstring("'" + std::string(text) + "'"));
}

}  // namespace
}  // namespace cistern
