
#include "interop/report/address_rows.hpp"
#include "interop/report/analyses.hpp"
#include "interop/report/base64.hpp"
#include "tests/report/report_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::report {
namespace {

using nlohmann::json;

TEST_CASE("rows cover the addresses that have memory, and nothing between") {
  const Subject subject = testing::subjectOf(
      "r alloc 100000 1048576 0 0 1\nr alloc 40000000 1048576 0 0 1\na 512 0 1 100000 0 0 0\n");
  const AddressRows rows(Study(subject), 256);
  CHECK(rows.count() <= 256);
  CHECK(rows.count() >= 128);
  REQUIRE(rows.parts().size() == 2);
  CHECK(rows.parts()[1].address == 0x40000000);
  CHECK(rows.parts()[1].first_row == rows.parts()[0].rows);
  std::uint64_t bytes = 0;
  rows.forRows(0x40000000 + 100, 1'000'000, [&](std::size_t row, std::uint64_t here) {
    CHECK(row >= rows.parts()[1].first_row);
    CHECK(here <= rows.rowBytes());
    bytes += here;
  });
  CHECK(bytes == 1'000'000);
  rows.forRows(0x300000, 4096, [&](std::size_t, std::uint64_t) { FAIL("nothing lies there"); });
}

TEST_CASE("very many separate pieces still have few rows") {
  std::string text;
  for (int i = 1; i <= 2000; ++i) {
    char address[32];
    (void)std::snprintf(address, sizeof address, "%x", i * 0x100000);
    text += "a 512 0 1 " + std::string(address) + " 0 0 0\n";
  }
  const Subject subject = testing::subjectOf(text);
  CHECK(AddressRows(Study(subject), 256).count() <= 256);
}

/// The bytes behind base64, of which `bytes` are expected.
std::string decoded(const std::string& text, std::size_t bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string all;
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    bits = bits << 6 | std::uint32_t(text[i] == '=' ? 0 : kDigits.find(text[i]));
    if (i % 4 == 3) all += {char(bits >> 16), char(bits >> 8), char(bits)};
  }
  all.resize(bytes);
  return all;
}

TEST_CASE("the map shows how full each row is, column by column") {
  // The first half of the segment is taken from 10 µs to 20 µs.
  const json map = testing::modelOfText(
      "r alloc 100000 131072 0 0 0\na 65536 0 10 100000 0 0 0\nf 0 10\na 0 0 10 0 0 0 0\n")["heat"];
  const std::size_t rows = map["rows"], columns = map["columns"];
  CHECK(map["segments"] == json::array({{0x100000, 131072, 0, rows}}));
  REQUIRE(columns == 30);
  const std::string used = decoded(map["used"], rows * columns);
  for (std::size_t row = 0; row < rows; ++row) {
    CAPTURE(row);
    CHECK(used[5 * rows + row] == 0);
    CHECK(used[15 * rows + row] == (row < rows / 2 ? '\xff' : '\0'));
    CHECK(used[25 * rows + row] == 0);
  }
  const std::string mapped = decoded(map["mapped"], rows * columns);
  CHECK(mapped.substr(rows) == std::string(rows * (columns - 1), '\xff'));
}

TEST_CASE("there is no map without addresses") {
  CHECK(testing::modelOfText("a 512 0 1\n")["heat"].is_null());
}

}  // namespace
}  // namespace cistern::report
