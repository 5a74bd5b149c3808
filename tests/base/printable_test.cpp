#include "allocator/base/printable.hpp"

#include "tests/support/catch.hpp"

namespace cistern {
namespace {

TEST_CASE("what a terminal shows stays as it is") {
  for (const char* text : {"", "plain ~text", "\xc3\xa4\xc2\xb5\xe2\x80\xa6", "\xf0\x9f\x98\x80"}) {
    CHECK(printable(text) == text);
  }
}

TEST_CASE("what a terminal would act on stands as the number of its bytes") {
  CHECK(printable("\x1b[31m\n\t\r") == "\\x1b[31m\\x0a\\x09\\x0d");
  CHECK(printable(std::string_view("\0\x7f", 2)) == "\\x00\\x7f");
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\xc2\\x9b31m");  // a control sequence of C1
  CHECK(printable("\xe2\x80\xae"
                  "x") == "\\xe2\\x80\\xaex");            // from right to left
  CHECK(printable("\xe2\x80\xa8") == "\\xe2\\x80\\xa8");  // a line end
  CHECK(printableLines("a\n\x1b") == "a\n\\x1b");
}

TEST_CASE("what is no UTF-8 stands as the number of its bytes") {
  for (const char* text : {"\xff", "\x80", "\xc3", "\xc0\x8a", "\xe0\x80\x8a", "\xf0\x80\x80\x8a",
                           "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x80"}) {
    for (const char c : printable(text)) CHECK((c >= ' ' && c <= '~'));
  }
  CHECK(printable("\xc3x") == "\\xc3x");
}

TEST_CASE("text is cut to columns, and says so") {
  CHECK(clipped("12345", 5) == "12345");
  CHECK(clipped("123456", 5) == "1234…");
  CHECK(clippedInFront("12345", 5) == "12345");
  CHECK(clippedInFront("123456", 5) == "…3456");
  CHECK(clippedInFront("\xe7\xa3\x81\xe7\xa3\x81\xe7\xa3\x81", 5) == "…\xe7\xa3\x81\xe7\xa3\x81");
  CHECK(clipped("\xc3\xa4\xc3\xa4\xc3\xa4", 2) == "\xc3\xa4…");
  CHECK(clipped("\xe7\xa3\x81\xe7\xa3\x81\xe7\xa3\x81", 5) == "\xe7\xa3\x81\xe7\xa3\x81…");
  CHECK(columnsOf("\xe7\xa3\x81x") == 3);
}

}  // namespace
}  // namespace cistern
