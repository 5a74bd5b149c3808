#include "interop/report/report_page.hpp"

#include <zlib.h>

#include "interop/report/base64.hpp"
#include "interop/report/gzip.hpp"
#include "interop/report/model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skipped.hpp"

namespace cistern::report {
namespace {

std::string unpacked(const std::string& packed) {
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
  std::string text(packed.size() * 2000 + 100, '\0');
  std::string in = packed;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = uInt(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = uInt(text.size());
  REQUIRE(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  text.resize(stream.total_out);
  (void)inflateEnd(&stream);
  return text;
}

TEST_CASE("base64 is that of RFC 4648") {
  CHECK(base64("") == "");
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foobar") == "Zm9vYmFy");
  CHECK(base64(std::string("\0\xff\xfe", 3)) == "AP/+");
}

TEST_CASE("gzip keeps the text, whatever its length") {
  for (const std::size_t size : {0u, 1u, 1u << 20, (1u << 20) + 1, 3'000'000u}) {
    std::string text(size, 'x');
    for (std::size_t i = 0; i < size; i += 7) text[i] = char('a' + i % 23);
    CHECK(unpacked(gzipOf({packed(text)})) == text);
    const std::string_view whole = text;
    CHECK(unpacked(gzipOf({packed(whole.substr(0, size / 3)), packed(whole.substr(size / 3))})) ==
          text);
  }
}

TEST_CASE("text that is not UTF-8 is replaced") {
  CHECK(textOf({{"name", "a\xff"}}) == "{\"name\":\"a\xEF\xBF\xBD\"}");
}

TEST_CASE("a page holds the model, the libraries and their licences, and loads nothing") {
  if (!missingPackages().empty()) return test::skipped("this build has no page");
  const std::string model = gzipOf({packed("{\"format\":1}")});
  const std::string page = pageOf(model);
  const std::string data = base64(model);
  CHECK(page.find('>' + data + "</script>") != page.npos);
  CHECK(page.find("d3js.org v") != page.npos);
  CHECK(page.find("Redistributions of source code must retain") != page.npos);
  CHECK(page.find("<!-- cistern:") == page.npos);
  for (const char* loads : {" src=\"http", "@import", "<link rel=\"stylesheet"})
    CHECK(page.find(loads) == page.npos);
}

}  // namespace
}  // namespace cistern::report
