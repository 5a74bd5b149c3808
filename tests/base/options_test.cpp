// What a conf text sets, and what it refuses.
#include "cistern/options.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "allocator/base/option_table.hpp"
#include "tests/support/catch.hpp"

namespace cistern {
namespace {

using Catch::Matchers::ContainsSubstring;

// The message with which `conf` is refused; fails when it is taken.
std::string refusal(std::string_view conf) {
  try {
    (void)Options::parse(conf);
  } catch (const OptionError& error) {
    return error.what();
  }
  FAIL("taken: " << conf);
  return {};
}

TEST_CASE("an empty conf changes nothing") {
  CHECK(Options::parse("") == Options{});
  CHECK(Options::parse("  ") == Options{});
  CHECK(Options{}.conf().empty());
}

TEST_CASE("a conf sets what it names, in order") {
  const Options options = Options::parse(
      "max_split_size:256MiB, max_non_split_rounding : 64M,garbage_collection_threshold:0.8,"
      "memory_fraction:0.5,limit:80 GB,large_segment_size:32M,cross_stream_reuse:False,"
      "history:9,backing:segments,page_size:4M,recycle:eager,"
      "recycle_budget:0.25,background_thread:False,history:7");
  CHECK(options.backing == Backing::kSegments);
  CHECK(options.page_size == 4 * kMiB);
  CHECK(options.recycle == Recycle::kEager);
  CHECK(options.recycle_budget == 0.25);
  CHECK_FALSE(options.background_thread);
  CHECK(options.max_split_size == 256 * kMiB);
  CHECK(options.max_non_split_rounding == 64 * kMiB);
  CHECK(options.garbage_collection_threshold == 0.8);
  CHECK(options.memory_fraction == 0.5);
  CHECK(options.limit == 80 * kGiB);
  CHECK(options.large_segment_size == 32 * kMiB);
  CHECK_FALSE(options.reusesAcrossStreams());
  CHECK(options.history == 7);
}

TEST_CASE("PyTorch's spellings mean the same") {
  const Options options = Options::parse(
      "max_split_size_mb:512,max_non_split_rounding_mb:128,large_segment_size_mb:40,"
      "per_process_memory_fraction:0.25,expandable_segments:True,"
      "release_lock_on_cudamalloc:True,roundup_power2_divisions:[256:1,512:2,>:4]");
  CHECK(options.max_split_size == 512 * kMiB);
  CHECK(options.max_non_split_rounding == 128 * kMiB);
  CHECK(options.large_segment_size == 40 * kMiB);
  CHECK(options.memory_fraction == 0.25);
  CHECK(options.expandable_segments);
  CHECK(options.roundup_power2_divisions.divisionsFor(kGiB) == 4);
}

TEST_CASE("setting one option never resets another") {
  const Options base = Options::parse(
      "max_split_size:256M,garbage_collection_threshold:0.5,limit:1G,history:3,"
      "roundup_power2_divisions:8,expandable_segments:1,cross_stream_reuse:0,backing:segments,"
      "page_size:2M,recycle:off,recycle_budget:none,background_thread:0");
  for (const OptionRow& row : optionTable()) {
    Options changed = base;
    REQUIRE(row.set(changed, row.name, row.print(Options{})));
    for (const OptionRow& other : optionTable()) {
      if (&other != &row) CHECK(other.print(changed) == other.print(base));
    }
  }
}

TEST_CASE("every option's words read back, and special words return to the default") {
  for (const OptionRow& row : optionTable()) {
    INFO(row.name);
    Options options;
    CHECK(row.set(options, row.name, row.print(options)));
    CHECK(options == Options{});
  }
  const std::string conf = "max_split_size:21M,limit:3M,page_size:2M,memory_fraction:0.1,history:1";
  CHECK(Options::parse("max_split_size:unlimited,limit:none,page_size:auto,"
                       "garbage_collection_threshold:off",
                       Options::parse(conf + ",garbage_collection_threshold:0.9")) ==
        Options::parse("memory_fraction:0.1,history:1"));
}

TEST_CASE("conf() is the text of what differs from the defaults") {
  const std::string conf =
      "max_split_size:1536 MiB,roundup_power2_divisions:[256:1,512:2,>:4],"
      "garbage_collection_threshold:0.1,limit:2097153 B,cross_stream_reuse:false";
  CHECK(Options::parse(conf).conf() == conf);
  CHECK(Options::parse(Options::parse(conf).conf()) == Options::parse(conf));
}

TEST_CASE("a value out of range is refused with the key, the value and what is allowed") {
  const auto [conf, allowed] = GENERATE(table<std::string, std::string>({
      {"backing:vmm", "pages or segments"},
      {"page_size:1M", "2 MiB to 16 GiB"},
      {"page_size:3M", "a multiple of 2 MiB, or auto"},
      {"recycle:never", "budget, eager or off"},
      {"recycle_budget:1", "above 0, below 1, or none"},
      {"recycle_budget:0", "above 0, below 1, or none"},
      {"background_thread:maybe", "true or false"},
      {"max_split_size:19M", "20 MiB to 1024 TiB, or unlimited"},
      {"max_split_size:-1", "20 MiB to 1024 TiB"},
      {"max_split_size_mb:19", "given as whole MiB"},
      {"max_split_size_mb:32M", "given as whole MiB"},
      {"max_split_size_mb:unlimited", "given as whole MiB"},
      {"max_split_size_mb:99999999999999999999", "given as whole MiB"},
      {"max_non_split_rounding:1M", "2 MiB to"},
      {"max_non_split_rounding:2000T", "1024 TiB"},
      {"roundup_power2_divisions:3", "a power of two from 1 to 64"},
      {"roundup_power2_divisions:128", "a power of two from 1 to 64"},
      {"roundup_power2_divisions:[256:1,512", "ascending powers of two"},
      {"garbage_collection_threshold:0", "above 0, below 1, or off"},
      {"garbage_collection_threshold:1", "above 0, below 1, or off"},
      {"garbage_collection_threshold:nan", "above 0, below 1"},
      {"memory_fraction:1.01", "above 0, up to 1"},
      {"per_process_memory_fraction:inf", "above 0, up to 1"},
      {"memory_fraction:0.5x", "above 0, up to 1"},
      {"limit:0", "2 MiB to 1024 TiB, or none"},
      {"large_segment_size:21M", "a multiple of 2 MiB"},
      {"large_segment_size:17G", "2 MiB to 16 GiB"},
      {"expandable_segments:yes", "true or false"},
      {"history:1000000001", "0 to 1000000000"},
      {"history:-1", "0 to 1000000000"},
      {"history: ", "0 to 1000000000"},
      {"history", "no value; allowed: a whole number"},
  }));
  const std::string message = refusal(conf);
  const std::string key = conf.substr(0, conf.find(':'));
  CHECK_THAT(message, ContainsSubstring("'" + key + "'"));
  CHECK_THAT(message, ContainsSubstring(allowed));
  if (conf.size() > key.size() + 2) {
    CHECK_THAT(message, ContainsSubstring(conf.substr(key.size() + 1)));
  }
}

TEST_CASE("an unknown option is refused with those near it") {
  CHECK_THAT(refusal("max_splitsize:1G"), ContainsSubstring("near it: max_split_size"));
  CHECK_THAT(refusal("Max_Split_Size:1G"), ContainsSubstring("near it: max_split_size"));
  CHECK_THAT(refusal("LIMIT:1G"), ContainsSubstring("near it: limit"));
  CHECK_THAT(refusal("fraction:1"), ContainsSubstring("near it: memory_fraction"));
  CHECK_THAT(refusal("large_segment_mb:20"), ContainsSubstring("near it: "));
  CHECK_THAT(refusal("zzzzzzzzzz:1"), ContainsSubstring("there are: backing, "));
}

TEST_CASE("a malformed conf is refused with its column") {
  CHECK_THAT(refusal("history:12,,limit:1G"), ContainsSubstring("column 12: expected key:value"));
  CHECK_THAT(refusal("history:12,"), ContainsSubstring("column 12"));
  CHECK_THAT(refusal(":1"), ContainsSubstring("column 1: expected key:value"));
  CHECK_THAT(refusal("history:12,bogus_key:2"), ContainsSubstring("column 12"));
  CHECK_THAT(refusal("roundup_power2_divisions:[1:2,limit:1G"), ContainsSubstring("[1:2,limit"));
}

TEST_CASE("the environment sets options, and its errors name it") {
  REQUIRE(unsetenv("CISTERN_CONF") == 0);
  CHECK(Options::fromEnvironment() == Options{});
  REQUIRE(setenv("CISTERN_CONF", "history:5", 1) == 0);
  CHECK(Options::fromEnvironment().history == 5);
  REQUIRE(setenv("CISTERN_CONF", "history:many", 1) == 0);
  CHECK_THROWS_WITH(Options::fromEnvironment(),
                    ContainsSubstring("CISTERN_CONF") && ContainsSubstring("'many'"));
  REQUIRE(unsetenv("CISTERN_CONF") == 0);
}

TEST_CASE("docs/options.md is what the table says (else: ./dev docs)") {
  std::ifstream file(CISTERN_SOURCE_DIR "/docs/options.md");
  std::stringstream page;
  page << file.rdbuf();
  CHECK(page.str() == optionsMarkdown());
}

}  // namespace
}  // namespace cistern
