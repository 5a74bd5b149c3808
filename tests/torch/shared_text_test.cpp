// The text that names a shared block.
#include "interop/torch/torch_texts.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {

TEST_CASE("a text names the block that it was written of, and no other text does",
          "[torch][sharing]") {
  const sharing::BlockName name = cistern_torch::namedBy(cistern_torch::textOf({"name-1", 5}));
  CHECK(name.socket == "name-1");
  CHECK(name.key == 5);
  for (const char* wrong : {"", "x", "cistern-pages", "cistern-pages n", "cistern-pages n x",
                            "cistern-pages n 1 2", "cistern-segments n 1"})
    CHECK_THROWS_WITH(cistern_torch::namedBy(wrong),
                      Catch::Matchers::ContainsSubstring("a handle that is not"));
}

}  // namespace cistern::test
