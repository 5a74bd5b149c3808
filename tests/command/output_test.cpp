// What is printed: that it arrives, how wide it is, and what it says at the end.
#include <fstream>
#include <sstream>
#include <streambuf>

#include "allocator/base/printable.hpp"
#include "interop/command/run.hpp"
#include "interop/command/wrap.hpp"
#include "tests/command/command.hpp"
#include "tests/support/catch.hpp"

using Catch::Matchers::ContainsSubstring;

namespace cistern::test {
namespace {

using Args = std::vector<std::string>;

const std::string kOneBlock = TraceText().allocate(1024).free(0).text();

/// A stream that takes so many characters and then no more.
class Narrow final : public std::streambuf {
 public:
  explicit Narrow(std::size_t most) : left_(most) {}

 private:
  int_type overflow(int_type c) override {
    if (left_ == 0) return traits_type::eof();
    --left_;
    return traits_type::not_eof(c);
  }
  std::size_t left_;
};

std::vector<std::string> linesOf(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("an output that cannot be written is an error, whatever is printed") {
  const TempFile trace("small.trace", kOneBlock);
  const Args replay = {"replay", trace.path(), "--device", "sim"};
  std::vector<Args> lines = {{"--help"},
                             {"--version"},
                             {"options"},
                             {"options", "--help"},
                             {"options", "--markdown"},
                             {"replay", "--help"},
                             replay};
  for (const char* format : {"--json", "--csv"}) {
    lines.push_back(replay);
    lines.back().emplace_back(format);
  }
  for (const Args& args : lines) {
    INFO(args.front() << " " << args.back());
    std::ostringstream err;
    std::ofstream full("/dev/full");
    CHECK(command::run(args, full, err) == 1);
    CHECK(err.str() == "cistern: the output cannot be written: No space left on device\n");

    const std::size_t whole = runCommand(args).out.size();
    for (const std::size_t most : {std::size_t{0}, whole / 2}) {
      Narrow narrow(most);
      std::ostream out(&narrow);
      CHECK(command::run(args, out, err) == 1);
      CHECK(out.exceptions() == std::ios::goodbit);  // or the end of the program would throw
    }
  }
}

TEST_CASE("bad usage is bad usage, though the output cannot be written") {
  std::ofstream full("/dev/full");
  std::ostringstream err;
  CHECK(command::run({"replay", "no such", "--device", "sim"}, full, err) == 2);
}

TEST_CASE("nothing that is printed for people is wider than a page") {
  const TempFile named(std::string(180, 'n') + ".trace",
                       TraceText().allocate(40 << 20).allocate(40 << 20).text());
  const TempFile wide("wide.trace", "# {\"name\": \"\xe7\xa3\x81\xe7\xa3\x81" +
                                        std::string(60, '.') + "\"}\n" + kOneBlock);
  for (const Args& args : std::vector<Args>{
           {"replay", named.path(), wide.path(), recordedTrace("streams_prefetch"), "--device",
            "sim", "--policy", "cistern,torch-rules,direct", "--fit", "--gpu-lag-us", "10000"},
           {"replay", named.path(), "--device", "sim", "--capacity", "60MiB"},
           {"replay", "--help"},
           {"run", "--help"},
           {"generate", "--help"},
           {"doctor", "--help"},
           {"options"},
           {"--help"}}) {
    for (const std::string& line : linesOf(runCommand(args).out)) {
      std::size_t columns = 0;  // of a rule each character takes one
      for (const char c : line) columns += (c & 0xc0) == 0x80 ? 0 : 1;
      INFO(line);
      CHECK(columns <= command::kPageWidth);
    }
  }
}

TEST_CASE("the table ends with what was saved, and at what cost") {
  const TempFile one("one.trace", TraceText().allocate(40 << 20).text());
  const TempFile two("two.trace", TraceText().allocate(20 << 20).free(0).text());
  const std::string out =
      runCommand({"replay", one.path(), two.path(), "--device", "sim", "--policy",
                  "cistern,torch,direct", "--conf", "backing:segments"})
          .out;
  INFO(out);
  const std::string summary = out.substr(out.find("\n\nIn short:"));
  std::string flat = summary;
  std::replace(flat.begin(), flat.end(), '\n', ' ');
  CHECK_THAT(flat, ContainsSubstring("the 2 programs ask for 60.00 MiB at their peaks, added up"));
  CHECK_THAT(flat, ContainsSubstring("cistern reserves 60.00 MiB to serve them: as much as "
                                     "torch-rules, as much as direct."));
  CHECK_THAT(flat, ContainsSubstring("Calls to the driver that the program waits for: "));
  CHECK_THAT(flat, ContainsSubstring("; under torch-rules "));
  CHECK_THAT(flat, ContainsSubstring(", under direct 3 ("));
  CHECK_THAT(out, ContainsSubstring("not PyTorch"));
}

TEST_CASE("the summary counts the calls that the table has, and no others") {
  TraceText text;
  for (int i = 0; i < 40; ++i) text.allocate(20 << 20).free(std::uint64_t(i));
  const TempFile trace("pool.trace", text.text());
  const Args args = {"replay", trace.path(), "--device", "sim", "--policy", "driver-pool"};
  const std::string out = runCommand(args).out;
  INFO(out);
  const std::string row = out.substr(out.find("    driver-pool"));
  std::istringstream cells(row);
  std::string policy, reserved, unit, efficiency, percent, ns, calls;
  cells >> policy >> reserved >> unit >> efficiency >> percent >> ns >> calls;
  std::string flat = out;
  std::replace(flat.begin(), flat.end(), '\n', ' ');
  CHECK_THAT(flat, ContainsSubstring("that the program waits for: " + calls + " ("));
}

TEST_CASE("--fit says in bytes what would serve") {
  const TempFile trace("one.trace", TraceText().allocate(40 << 20).text());
  const std::string out = runCommand({"replay", trace.path(), "--device", "sim", "--fit"}).out;
  CHECK_THAT(out,
             ContainsSubstring("smallest capacity that serves it, within .25 %: cistern 40 MiB."));
}

TEST_CASE("a trace that one policy did not serve is not compared") {
  const TempFile trace("one.trace", TraceText().allocate(40 << 20).text());
  const std::string out = runCommand({"replay", trace.path(), "--device", "sim", "--policy",
                                      "cistern,direct", "--conf", "limit:20MiB"})
                              .out;
  CHECK_THAT(out, ContainsSubstring("✗ event 1 of 1"));
  CHECK(out.find("In short") == std::string::npos);
}

TEST_CASE("each GPU of a snapshot has its rows, and --gpu chooses one") {
  const auto names = [](const Args& more) {
    Args args = {"replay", sampleSnapshot(), "--device", "sim", "--json"};
    args.insert(args.end(), more.begin(), more.end());
    Args found;
    for (const auto& row : runCommand(args).rows()) found.push_back(row["trace"]);
    return found;
  };
  const std::string first = "snapshot.p4 [cuda:0]", second = "snapshot.p4 [cuda:1]";
  CHECK(names({}) == Args{first, second});
  CHECK(names({"--policy", "cistern,direct"}) == Args{first, first, second, second});
  CHECK(names({"--gpu", "1"}) == Args{second});
  const TempFile picture("one.svg", "before");
  CHECK(names({"--gpu", "0", "--plot", picture.path()}) == Args{first});
}

TEST_CASE("memory that no row has is named on the error output") {
  const TempFile snapshot("idle.pickle",
                          "(dVdevice_traces\n(l(l(dVaction\nValloc\nsVaddr\nI1\nsVsize\nI8\ns"
                          "Vstream\nI0\nsaasVsegments\n(l(dVdevice\nI1\nsVaddress\nI1\nsVstream\n"
                          "I0\nsVblocks\n(l(dVsize\nI512\nsVstate\nVactive_allocated\nsasas.");
  const Outcome outcome = runCommand({"replay", snapshot.path(), "--device", "sim", "--json"});
  CHECK(outcome.status == 0);
  CHECK(outcome.rows().size() == 1);
  CHECK(outcome.err == "cistern: " + snapshot.path() +
                           ": cuda:1 has 1 block of 512 B and no history, and is left out\n");
}

TEST_CASE("rows of one name are told apart by their files") {
  const std::string content = "# {\"name\": \"train\"}\n" + kOneBlock;
  const TempFile one("a.trace", content), two("b.trace", content), other("c.trace", kOneBlock);
  const Args args = {"replay", one.path(), two.path(), other.path(), "--device", "sim"};
  const auto with = [&](const Args& more) {
    Args all = args;
    all.insert(all.end(), more.begin(), more.end());
    return runCommand(all);
  };
  const auto rows = with({"--json", "--generate", "serve:1"}).rows();
  REQUIRE(rows.size() == 4);
  CHECK(rows[0]["trace"] == "train");
  CHECK(rows[0]["file"] == one.path());
  CHECK(rows[1]["trace"] == "train");
  CHECK(rows[1]["file"] == two.path());
  CHECK(rows[2]["file"] == other.path());
  CHECK(rows[3]["file"].is_null());
  const auto lines = linesOf(with({"--csv"}).out);
  CHECK(lines[1].rfind("train (" + one.path() + "),", 0) == 0);
  CHECK(lines[2].rfind("train (" + two.path() + "),", 0) == 0);
  CHECK(lines[3].rfind("c,", 0) == 0);
  const std::string table = with({}).out;
  CHECK_THAT(table, ContainsSubstring("a.trace): 1.00 KiB at its peak"));
  CHECK_THAT(table, ContainsSubstring("b.trace): 1.00 KiB at its peak"));
  CHECK_THAT(table, ContainsSubstring("  c: 1.00 KiB at its peak"));
  const auto twice = runCommand({"replay", one.path(), one.path(), "--device", "sim", "--csv"});
  CHECK_THAT(twice.out, !ContainsSubstring("train ("));
  CHECK_THAT(with({"--csv", "--capacity", "1"}).err,
             ContainsSubstring("train (" + two.path() + "), policy cistern"));
}

TEST_CASE("a program that asks for no bytes is served, and has no efficiency") {
  const TempFile trace("zero.trace", TraceText().allocate(0).free(0).text());
  const Outcome outcome = runCommand({"replay", trace.path(), "--device", "sim", "--json"});
  CHECK(outcome.status == 0);
  REQUIRE(outcome.rows().size() == 1);
  CHECK(outcome.rows()[0]["ok"] == true);
  CHECK(outcome.rows()[0]["efficiency"].is_null());
}

TEST_CASE("colours are for those who want them") {
  const TempFile trace("small.trace", kOneBlock);
  for (const bool colours : {false, true}) {
    std::ostringstream out, err;
    const Args args = {"replay", trace.path(), "--device", "sim"};
    CHECK(command::run(args, command::Console{out, err, false, colours}) == 0);
    CHECK((out.str().find('\x1b') != std::string::npos) == colours);
  }
}

TEST_CASE("lines are broken between words, and keep to their indent") {
  const std::string word(40, 'w');
  CHECK(command::wrapped("a b") == "a b\n");
  CHECK(command::wrapped("") == "\n");
  CHECK(command::wrapped(word + " " + word + " " + word, "  ", "- ") ==
        "- " + word + " " + word + "\n  " + word + "\n");
  CHECK(command::wrapped(std::string(120, 'x') + " y", " ") ==
        " " + std::string(120, 'x') + "\n y\n");
}

}  // namespace cistern::test
