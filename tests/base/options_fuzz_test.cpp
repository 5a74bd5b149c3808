// Whatever text arrives, it is either taken or refused with an OptionError.
#include <random>

#include "cistern/options.hpp"
#include "tests/support/catch.hpp"

namespace cistern {
namespace {

constexpr std::string_view kSeeds[] = {
    "max_split_size:256MiB,garbage_collection_threshold:0.8,limit:80 GB",
    "roundup_power2_divisions:[256:1,512:2,>:4],expandable_segments:True",
    "max_split_size_mb:512,per_process_memory_fraction:0.25,history:12,page_size:4M",
};
constexpr std::string_view kLetters = "[]:,>. _-+eE0123456789kMGTiBx\t\0\xff";

// One to four edits of a seed: a letter replaced, put in or taken out, or a piece repeated.
std::string mutate(std::string text, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return std::size_t(random() % n); };
  for (std::size_t edits = 1 + below(4); edits > 0 && !text.empty(); --edits) {
    const std::size_t at = below(text.size());
    const char letter = kLetters[below(kLetters.size())];
    switch (below(4)) {
      case 0:
        text[at] = letter;
        break;
      case 1:
        text.insert(at, 1, letter);
        break;
      case 2:
        text.erase(at, 1 + below(8));
        break;
      default:
        text.insert(below(text.size()), text.substr(at, 1 + below(16)));
    }
  }
  return text;
}

TEST_CASE("a mutated conf is taken or refused, and what is taken reads back", "[long]") {
  std::mt19937 random(20261);
  int taken = 0;
  for (int round = 0; round < 30000; ++round) {
    const std::string conf = mutate(std::string(kSeeds[std::size_t(round) % 3]), random);
    INFO(conf);
    try {
      const Options options = Options::parse(conf);
      ++taken;
      if (!(Options::parse(options.conf()) == options)) FAIL("reads back differently");
    } catch (const OptionError& error) {
      if (std::string_view(error.what()).empty()) FAIL("refused without a word");
    }
  }
  CHECK(taken > 100);
}

}  // namespace
}  // namespace cistern
