#include "interop/trace/unpickle.hpp"

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "interop/trace/trace_file.hpp"
#include "tests/support/catch.hpp"

namespace cistern::trace::testing {
namespace {

using namespace std::string_literals;

std::string plainPickle() {
  return TraceFile(CISTERN_SOURCE_DIR "/tests/trace/samples/plain.pickle").rest();
}

std::string pickleComplaint(const std::string& bytes) {
  try {
    TextSource source(bytes);
    unpickle(source, "t");
  } catch (const TraceError& error) {
    return error.what();
  }
  return "";
}

// The elements that the root dict holds under `key`.
std::span<const ValueId> elements(const PickleDocument& document, std::string_view key) {
  const auto found = document.find(document.root(), key);
  REQUIRE(found);
  return document.items(*found);
}

std::vector<std::string_view> kinds(const PickleDocument& document, std::string_view key) {
  std::vector<std::string_view> names;
  for (const ValueId id : elements(document, key)) names.push_back(kindName(document.kind(id)));
  return names;
}

TEST_CASE("every kind of plain data that Python pickles is read") {
  const std::string bytes = plainPickle();
  TextSource source(bytes);
  const PickleDocument document = unpickle(source, "t");
  using Names = std::vector<std::string_view>;
  CHECK(kinds(document, "texts") == Names{"str", "str", "str", "bytes", "bytes", "bytes"});
  CHECK(kinds(document, "sets") == Names{"set", "set", "set"});
  CHECK(kinds(document, "rest") == Names{"None", "bool", "bool", "float"});
  const auto tuples = elements(document, "tuples");
  for (std::size_t i = 0; i < tuples.size(); ++i) CHECK(document.items(tuples[i]).size() == i);
  const auto memo = elements(document, "memo");
  REQUIRE(memo.size() == 600);
  CHECK(document.text(memo[599]) == "299");
  CHECK(document.text(elements(document, "texts")[2]).size() == 600);
}

TEST_CASE("ints keep their value up to 64 bits") {
  const std::string bytes = plainPickle();
  TextSource source(bytes);
  const PickleDocument document = unpickle(source, "t");
  const std::vector<std::int64_t> expected{
      0, 1, -1, 255, 256, 65'535, 65'536, 1ll << 31, -(1ll << 31), 1ll << 62, INT64_MIN};
  const auto ints = elements(document, "ints");
  REQUIRE(ints.size() == expected.size() + 2);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(document.integer(ints[i]) == expected[i]);
  }
  CHECK(document.kind(ints[expected.size()]) == ValueKind::kWideInt);
}

TEST_CASE("opcodes that would name or run code are refused by name and offset") {
  const std::vector<std::pair<std::string, const char*>> refused{
      {"cos\nsystem\n", "GLOBAL"},
      {"\x93", "STACK_GLOBAL"},
      {"ios\nsystem\n", "INST"},
      {"o", "OBJ"},
      {"R", "REDUCE"},
      {"b", "BUILD"},
      {"\x81", "NEWOBJ"},
      {"\x92", "NEWOBJ_EX"},
      {"\x82\x01", "EXT1"},
      {"\x83\x01\x01", "EXT2"},
      {"\x84", "EXT4"},
      {"P1\n", "PERSID"},
      {"Q", "BINPERSID"},
      {"\x97", "NEXT_BUFFER"},
      {"\x98", "READONLY_BUFFER"},
  };
  for (const auto& [opcode, name] : refused) {
    CHECK(pickleComplaint("\x80\x04N" + opcode + ".") ==
          fmt::format("t: byte 3: opcode {}: refused; expected plain data, this names or runs code",
                      name));
  }
}

TEST_CASE("a malformed pickle is named with its byte and what was expected") {
  const std::vector<std::pair<std::string, const char*>> cases{
      {"\x80\x04", "byte 2: expected an opcode, found the end of the file"},
      {"\x80\x06N.", "byte 0: opcode PROTO: expected a protocol up to 5, found 6"},
      {"\x80\x04\xff.", "byte 2: expected an opcode, found 0xff"},
      {"X\xff\xff\xff\xff.", "byte 0: opcode BINUNICODE: expected 4294967295 more bytes, found 1"},
      {"\x8d\xff\xff\xff\xff\xff\xff\xff\xff",
       "byte 0: opcode BINUNICODE8: expected 18446744073709551615 more bytes, found 0"},
      {"I12", "byte 0: opcode INT: expected a line, found the end of the file"},
      {"I1x\n.", "byte 0: opcode INT: expected an int, found '1x'"},
      {"Sno\n.", "byte 0: opcode STRING: expected a quoted string, found 'no'"},
      {".", "byte 0: opcode STOP: expected a value on the stack, found none"},
      {"(.", "byte 1: opcode STOP: expected a value on the stack, found none"},
      {"N(a", "byte 2: opcode APPEND: expected 1 values on the stack, found 0"},
      {"e", "byte 0: opcode APPENDS: expected a mark on the stack, found none"},
      {"NNa", "byte 2: opcode APPEND: expected a list to add to, found None"},
      {"}(Nu", "byte 3: opcode SETITEMS: expected as many values as keys"},
      {"h\x05", "byte 0: opcode BINGET: expected a memo slot that is set, found 5"},
      {"Nr\xff\xff\xff\xff",
       "byte 1: opcode LONG_BINPUT: expected memo slots in order, found "
       "4294967295"},
      {"gx\n", "byte 0: opcode GET: expected a number, found 'x'"},
  };
  for (const auto& [bytes, expected] : cases) CHECK(pickleComplaint(bytes) == "t: "s + expected);
}

TEST_CASE("old opcodes, marks and the memo work as in Python") {
  TextSource source("(I1\nI2\n0I3\np0\n2g0\nL5L\nI01\nt.");
  const PickleDocument document = unpickle(source, "t");
  const auto items = document.items(document.root());
  REQUIRE(items.size() == 6);
  CHECK(document.integer(items[0]) == 1);
  CHECK(items[1] == items[3]);
  CHECK(document.integer(items[4]) == 5);
  CHECK(document.kind(items[5]) == ValueKind::kBool);
  CHECK(pickleComplaint("(((01N1N.") == "");
}

TEST_CASE("nesting without end, cycles and doubling cost neither stack nor memory", "[long]") {
  const std::size_t deep = 1'000'000;
  CHECK(pickleComplaint(std::string(deep, ']') + std::string(deep - 1, 'a') + ".") == "");
  CHECK(pickleComplaint("]q\0h\0a."s) == "");
  std::string laughs = "]q\0"s;  // each list holds the one before it twice
  for (int i = 0; i < 100'000; ++i) laughs += "](h\0h\0eq\0"s;
  CHECK(pickleComplaint(laughs + ".") == "");
  CHECK(pickleComplaint(std::string(deep, '(')) != "");
}

TEST_CASE("a pickle may take so many times its length in memory, and is refused beyond") {
  const std::string lists = "\x80\x04" + std::string(4 * kMiB, ']') + ".";
  const std::string complaint = pickleComplaint(lists);
  CHECK(complaint.find("opcode EMPTY_LIST: expected a recorded program, found values that take") !=
        std::string::npos);
  CHECK(complaint.find("of memory: 8 times the length read so far and 32.00 MiB") !=
        std::string::npos);
  const std::string marks = "\x80\x04" + std::string(9 * kMiB, '(') + ".";
  CHECK(pickleComplaint(marks).find("opcode MARK: expected a recorded program") !=
        std::string::npos);
}

// Takes every dict out of a list, and gives it a number from 0.
class TakesAll final : public ItemTaker {
 public:
  bool take(PickleDocument& document, ValueId, ValueId dict) override {
    if (document.find(dict, "keep")) return false;
    document.take(dict, taken++);
    return true;
  }
  std::uint32_t taken = 0;
};

/// A source whose pieces are of one byte.
class Drops final : public ByteSource {
 public:
  explicit Drops(std::string text) : text_(std::move(text)) {}
  std::string_view next() override {
    if (at_ == text_.size()) return {};
    piece_ = text_[at_++];
    return {&piece_, 1};
  }

 private:
  std::string text_;
  std::size_t at_ = 0;
  char piece_ = 0;
};

TEST_CASE("dicts taken out of a list leave a mark, and their memory serves the next ones") {
  std::string bytes = "]"s;
  for (int i = 0; i < 1'000'000; ++i) bytes += "}(U\1aJ\1\2\3\4U\1bJ\5\6\7\10ua"s;
  TextSource source(bytes += "}U\4keepNsa.");
  TakesAll taker;
  const PickleDocument document = unpickle(source, "t", &taker);
  CHECK(taker.taken == 1'000'000);
  const auto items = document.items(document.root());
  REQUIRE(items.size() == 1'000'001);
  CHECK(items[0] == PickleDocument::kTakenItem);
  CHECK(document.kind(items.back()) == ValueKind::kDict);
  CHECK(document.size() < 1'000'100);  // a value for each dict; those of the ints are used again
}

TEST_CASE("a dict that was taken can neither be added to nor lose what others name") {
  TakesAll taker;
  TextSource added("(lp0\n(dp1\nag1\nVkey\nI1\ns.");
  CHECK_THROWS_WITH(
      unpickle(added, "t", &taker),
      Catch::Matchers::ContainsSubstring("opcode SETITEM: expected a dict to add to, found entry"));
  TextSource shared("(I7\np0\n(l(dVkey\ng0\nsag0\nI8\nt.");
  const PickleDocument document = unpickle(shared, "t", &taker);
  const auto items = document.items(document.root());
  REQUIRE(items.size() == 4);
  CHECK(document.integer(items[0]) == 7);
  CHECK(document.integer(items[2]) == 7);
  CHECK(document.integer(items[3]) == 8);
}

TEST_CASE("a pickle that comes a byte at a time is read as a whole one is") {
  const std::string bytes = "\x80\x04](X\5\0\0\0helloJ\1\0\0\0VA line\ne."s;
  Drops drops(bytes);
  const PickleDocument document = unpickle(drops, "t");
  const auto items = document.items(document.root());
  REQUIRE(items.size() == 3);
  CHECK(document.text(items[0]) == "hello");
  CHECK(document.integer(items[1]) == 1);
  CHECK(document.text(items[2]) == "A line");
  Drops damaged("\x80\x04X\5\0\0\0hel"s);
  CHECK_THROWS_WITH(unpickle(damaged, "t"),
                    "t: byte 2: opcode BINUNICODE: expected 5 more bytes, found 3");
  Drops behind("N.more");
  CHECK_THROWS_WITH(unpickle(behind, "t"),
                    "t: byte 2: expected the end of the file, found 4 bytes behind the pickle");
}

TEST_CASE("a list keeps its items wherever it grows") {
  // Two lists that are filled in turn: each has to make room behind the other again and again.
  std::string bytes = "]q\0]q\1"s;
  for (int i = 0; i < 200; ++i) {
    const std::string number{'K', char(i)};
    bytes += "h\0"s + number + "a0h\1"s + "(" + number + number + "e0";
  }
  const std::string whole = "(" + bytes + "t.";
  TextSource source(whole);
  const PickleDocument document = unpickle(source, "t");
  const auto lists = document.items(document.root());
  REQUIRE(lists.size() == 2);
  const auto once = document.items(lists[0]), twice = document.items(lists[1]);
  REQUIRE(once.size() == 200);
  REQUIRE(twice.size() == 400);
  for (std::size_t i = 0; i < 200; ++i) {
    CHECK(document.integer(once[i]) == std::int64_t(i));
    CHECK(document.integer(twice[2 * i]) == std::int64_t(i));
    CHECK(document.integer(twice[2 * i + 1]) == std::int64_t(i));
  }
}

}  // namespace
}  // namespace cistern::trace::testing
