// What a PyTorch program reads when memory ends.
#include "interop/torch/torch_texts.hpp"
#include "tests/support/catch.hpp"

using cistern_torch::outOfMemoryText;

constexpr std::uint64_t kGiB = std::uint64_t(1) << 30;

TEST_CASE("out of memory begins as PyTorch says it", "[torch]") {
  CHECK(outOfMemoryText({20 << 20, 0, 80 * kGiB, kGiB / 2}) ==
        "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 80.00 GiB "
        "of which 512.00 MiB is free.");
  CHECK(outOfMemoryText({800000000 * kGiB, 1, 139 * kGiB, 100}) ==
        "CUDA out of memory. Tried to allocate 800000000.00 GiB. GPU 1 has a total capacity of "
        "139.00 GiB of which 100 bytes is free.");
  CHECK(outOfMemoryText({1536, 0, kGiB, 1024}) ==
        "CUDA out of memory. Tried to allocate 1.50 KiB. GPU 0 has a total capacity of 1024.00 MiB "
        "of which 1024 bytes is free.");
}

TEST_CASE("out of host memory says nothing of the device's", "[torch]") {
  CHECK(outOfMemoryText({2 * kGiB, 0, 80 * kGiB, 79 * kGiB, true}) ==
        "CUDA out of memory. Tried to allocate 2.00 GiB of host memory.");
}

TEST_CASE("a request of an exabyte and more is told as such", "[torch]") {
  CHECK(outOfMemoryText({std::uint64_t(1) << 60, 0, kGiB, 0}) ==
        "CUDA out of memory. Tried to allocate more than 1EB memory.");
  CHECK(outOfMemoryText({(std::uint64_t(1) << 60) - 1, 0, kGiB, 0}).find("more than") ==
        std::string::npos);
}
