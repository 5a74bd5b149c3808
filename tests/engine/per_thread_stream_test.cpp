// The handle of per-thread default streams is refused by name: one handle, another stream in each
// thread, so that memory in its order would be in none.
#include "tests/engine/engine_support.hpp"

namespace cistern::test {
namespace {

constexpr Stream kPerThread{2};

/// What the verb says when it refuses; "" when it does not.
template <class Verb>
std::string refusal(Verb verb) {
  try {
    verb();
  } catch (const InvalidArgument& refused) {
    return refused.what();
  }
  return "";
}

}  // namespace

TEST_CASE("every verb refuses the per-thread default stream, and says what to do", "[engine]") {
  SimRig rig;
  void* const block = rig.allocator.allocate(4 * kMiB);
  const CallCounts calls = rig.sim().callCounts();
  const std::string said[] = {refusal([&] { (void)rig.allocator.allocate(512, kPerThread); }),
                              refusal([&] { (void)rig.allocator.allocate(40 * kMiB, kPerThread); }),
                              refusal([&] { rig.allocator.recordStream(block, kPerThread); }),
                              refusal([&] { rig.allocator.registerStream(kPerThread); }),
                              refusal([&] { rig.allocator.forgetStream(kPerThread); })};
  for (const std::string& text : said) {
    CHECK_THAT(text, Catch::Matchers::ContainsSubstring("stream 0x2 of sim device 0 is the "
                                                        "per-thread default stream"));
    CHECK_THAT(text, Catch::Matchers::ContainsSubstring("make a stream for each thread"));
  }
  CHECK(rig.sim().callCounts() == calls);  // it is asked nothing, and nothing has changed
  rig.allocator.free(block);
  CHECK(rig.allocator.allocate(4 * kMiB) == block);
  rig.allocator.free(block);
}

TEST_CASE("no stream of the simulated device has the handle of per-thread streams", "[engine]") {
  SimRig rig;
  for (int i = 0; i < 5; ++i) CHECK(rig.stream() != kPerThread);
}

}  // namespace cistern::test
