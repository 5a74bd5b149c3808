// What CISTERN_STATS prints when a process ends.
#include <cstdio>
#include <cstdlib>

#include "cistern/pool.hpp"
#include "tests/history/history_support.hpp"
#include "tests/support/child_process.hpp"

namespace cistern::test {
namespace {

using Catch::Matchers::ContainsSubstring;

/// What a child that runs `body`, and exits, prints on stderr.
std::string printedBy(const char* stats, const auto& body) {
  const TemporaryFile file("stderr");
  const int status = statusOfChild([&] {
    if (std::freopen(file.path().c_str(), "w", stderr) == nullptr) std::_Exit(5);
    stats != nullptr ? ::setenv("CISTERN_STATS", stats, 1) : ::unsetenv("CISTERN_STATS");
    body();
  });
  CHECK(status == 0);
  return file.content();
}

void leak(SimRig& rig) {
  for (int i = 0; i < 3; ++i) (void)rig.allocator.allocate(1000, Stream{});
  (void)rig.allocator.allocate(3 * kMiB, Stream{});
  rig.allocator.free(rig.allocator.allocate(5000, Stream{}));
}

TEST_CASE("statistics and leaks are printed at the end of the process, if asked for") {
  const auto stays = [] { leak(*new SimRig); };
  CHECK(printedBy(nullptr, stays).empty());
  CHECK(printedBy("", stays).empty());
  CHECK(printedBy("0", stays).empty());
  const std::string text = printedBy("1", stays);
  CHECK_THAT(text, ContainsSubstring("cistern: sim device 0"));
  CHECK_THAT(text, ContainsSubstring("5 allocations, 1 frees, 0 requests that failed"));
  CHECK_THAT(text, ContainsSubstring("  never freed:\n    3.00 MiB in 1 block\n"));
  CHECK_THAT(text, ContainsSubstring("    2.93 KiB in 3 blocks of 1000 B\n"));
}

TEST_CASE("an allocator that goes is reported then, and once") {
  const std::string text = printedBy("1", [] {
    SimRig rig;
    leak(rig);
  });
  CHECK_THAT(text, ContainsSubstring("  never freed:\n"));
  CHECK(text.find("cistern: ") == text.rfind("cistern: "));
}

TEST_CASE("blocks are grouped by stack and label where there is a history") {
  const std::string text = printedBy("1", [] {
    SimRig rig("history:100,history_stacks:true");
    const LabelScope label("weights");
    leak(rig);
  });
  CHECK_THAT(text, ContainsSubstring("    3.00 MiB in 1 block, weights\n        "));
  CHECK_THAT(text, ContainsSubstring(", weights\n        "));
}

TEST_CASE("blocks whose pool sleeps at the end were never freed") {
  const std::string text = printedBy("1", [] {
    static SimRig* const rig = new SimRig("page_size:2M");  // they stay
    static Pools* const pools = new Pools(rig->allocator);
    static MemPool* const pool = new MemPool(*pools);
    (void)pool->allocate(3 * kMiB, Stream{});
    if (onPages(rig->allocator)) (void)pools->sleep({pool->id()});
  });
  CHECK_THAT(text, ContainsSubstring("  never freed:\n    3.00 MiB in 1 block"));
}

TEST_CASE("an allocator without leaks says so") {
  const std::string text = printedBy("1", [] {
    SimRig rig;
    rig.allocator.free(rig.allocator.allocate(1000, Stream{}));
  });
  CHECK_THAT(text, ContainsSubstring("  every block was freed\n"));
}

}  // namespace
}  // namespace cistern::test
