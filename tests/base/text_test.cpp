#include "allocator/base/text.hpp"

#include "tests/support/catch.hpp"

namespace cistern {
namespace {

TEST_CASE("trimming removes spaces at both ends only") {
  CHECK(trimmed(" \ta b ") == "a b");
  CHECK(trimmed("  ").empty());
}

TEST_CASE("cutting takes what stands before a separator") {
  std::string_view text = "a:b:c";
  bool found = false;
  CHECK(cutAt(text, ':', found) == "a");
  CHECK((found && text == "b:c"));
  CHECK(cutAt(text, ',', found) == "b:c");
  CHECK((!found && text.empty()));
}

TEST_CASE("numbers are read whole or not at all") {
  CHECK(readCount("0") == 0U);
  CHECK(readCount("18446744073709551615") == ~std::uint64_t{0});
  for (const auto* text : {"", " 1", "1 ", "+1", "-1", "1.0", "18446744073709551616"}) {
    CHECK_FALSE(readCount(text).has_value());
  }
  CHECK(readReal("0.5") == 0.5);
  CHECK(readReal("1e-3") == 0.001);
  for (const auto* text : {"", "x", "0.5x", "nan", "inf", "1e999"}) {
    CHECK_FALSE(readReal(text).has_value());
  }
}

TEST_CASE("the edit distance counts single letters") {
  CHECK(editDistance("", "") == 0);
  CHECK(editDistance("limit", "limit") == 0);
  CHECK(editDistance("limt", "limit") == 1);
  CHECK(editDistance("kitten", "sitting") == 3);
  CHECK(editDistance("", "abc") == 3);
  CHECK(editDistance("lmiit", "limit") == 1);
  CHECK(editDistance("ab", "ba") == 1);
}

TEST_CASE("a name is near another whatever the case, the nearest first") {
  CHECK(isNear("LIMIT", "limit"));
  CHECK(isNear("Lmiit", "limit"));
  CHECK(isNear("limits", "limit"));
  CHECK(isNear("split", "max_split_size"));
  CHECK_FALSE(isNear("best", "direct"));
  CHECK_FALSE(isNear("", "direct"));
  constexpr std::array<std::string_view, 3> kNames{"page_size", "page", "pages"};
  CHECK(nearestOf("Pages", kNames) == "pages");
  CHECK(nearestOf("page-size", kNames) == "page_size");
  CHECK(nearestOf("nothing", kNames).empty());
}

TEST_CASE("a text in JSON keeps its characters, and names what is none") {
  CHECK(quotedJson("a \"b\" \\") == R"("a \"b\" \\")");
  CHECK(quotedJson("né 記憶 🙂") == "\"né 記憶 🙂\"");
  CHECK(quotedJson("\n\x7f") == R"("\u000a\u007f")");
  CHECK(quotedJson("\xff\xc3") == R"("\u00ff\u00c3")");
}

}  // namespace
}  // namespace cistern
