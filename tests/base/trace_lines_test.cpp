#include "allocator/base/trace_lines.hpp"

#include "tests/support/catch.hpp"

namespace cistern {
namespace {

constexpr std::uint64_t kMost = ~std::uint64_t{0};
constexpr std::uint32_t kMost32 = ~std::uint32_t{0};

TEST_CASE("lines of numbers hold the largest ones") {
  TraceLines lines;
  lines.allocation(kMost, kMost, kMost, {kMost, kMost32, kMost32, kMost32});
  lines.allocation(1, 2, 3);
  lines.free(kMost, 0);
  lines.usesEnd(0, kMost);
  lines.stack(kMost32, 1);
  CHECK(lines.take() ==
        "a 18446744073709551615 18446744073709551615 18446744073709551615 ffffffffffffffff "
        "4294967295 4294967295 4294967295\n"
        "a 1 2 3\n"
        "f 18446744073709551615 0\n"
        "e 0 18446744073709551615\n"
        "S 4294967295 1\n");
  CHECK(lines.text().empty());
}

TEST_CASE("other lines are as the page of traces has them") {
  TraceLines lines;
  lines.comment(headerComment("a \"b\"", "recorded", R"(, "recording": 1)"));
  lines.comment("two\r\nlines");
  lines.memory("map", 0x1000, 4096, 1, 2, 3, Location::kHost, true);
  lines.failed(7, 0, 1, {0, 2, 3, 4}, "{}");
  lines.mark("step\n1", 5);
  lines.frame("f", "g.py", 12);
  lines.label(0, "forward");
  lines.pool(0, 7);
  CHECK(lines.text() ==
        "# {\"name\": \"a \\\"b\\\"\", \"stream_uses\": \"recorded\", \"recording\": 1}\n"
        "# two  lines\n"
        "r map 1000 4096 1 2 3 host stays\n"
        "o 7 0 1 2 3 4 {}\n"
        "t 5 \"step\\u000a1\"\n"
        "N \"f\" \"g.py\" 12\n"
        "L 0 \"forward\"\n"
        "P 0 7\n");
  CHECK(headerComment("x", "") == "{\"name\": \"x\"}");
}

}  // namespace
}  // namespace cistern
