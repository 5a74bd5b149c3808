#include "tests/support/sim_work.hpp"

#include <utility>
#include <vector>

namespace cistern::test {
namespace {

constexpr std::uint64_t kKernelNs = 2'000;  // what a small kernel takes

using sim::AccessKind;
using sim::MemoryView;

std::vector<std::uint32_t> pattern(std::size_t bytes, std::uint32_t seed) {
  std::vector<std::uint32_t> words(bytes / sizeof(std::uint32_t));
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = seed + static_cast<std::uint32_t>(i);
  return words;
}

}  // namespace

void SimWork::fill(Stream stream, Address address, std::size_t bytes, std::uint32_t seed) {
  const auto effect = [=](MemoryView& memory) {
    memory.write(address, pattern(bytes, seed).data(), bytes);
  };
  device_.launch(stream, {"fill", {{address, bytes, AccessKind::kWrite}}, kKernelNs, effect})
      .orThrow();
}

void SimWork::verify(Stream stream, Address address, std::size_t bytes, std::uint32_t seed) {
  const auto effect = [=, this](MemoryView& memory) {
    const auto expected = pattern(bytes, seed);
    std::vector<std::uint32_t> found(expected.size());
    memory.read(address, found.data(), bytes);
    for (std::size_t i = 0; i < found.size(); ++i) wrong_words_ += found[i] != expected[i];
  };
  device_.launch(stream, {"verify", {{address, bytes, AccessKind::kRead}}, kKernelNs, effect})
      .orThrow();
}

std::uint64_t SimWork::mismatches() {
  device_.synchronizeDevice().orThrow();
  return wrong_words_;
}

void SimWork::delay(Stream stream, std::uint64_t nanoseconds) {
  device_.launch(stream, {"delay", {}, nanoseconds, nullptr}).orThrow();
}

std::unique_ptr<DeviceWork> simWork() { return std::make_unique<SimWork>(); }

}  // namespace cistern::test
