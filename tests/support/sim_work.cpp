#include "tests/support/sim_work.hpp"

#include <algorithm>
#include <array>

#include "tests/support/words.hpp"

namespace cistern::test {
namespace {

constexpr std::uint64_t kKernelNs = 2'000;  // what a small kernel takes

using sim::AccessKind;
using sim::MemoryView;

/// `piece(address, words, first)` for one piece of the block after the other; `first` is the index
/// of its first word. Pieces, because a block's words need not be in the cache all at once.
template <class Piece>
void inPieces(Address address, std::size_t bytes, Piece piece) {
  std::array<std::uint32_t, 4'096> buffer;
  const std::size_t count = bytes / sizeof(std::uint32_t);
  for (std::size_t i = 0; i < count; i += buffer.size()) {
    const std::span words = std::span(buffer).first(std::min(buffer.size(), count - i));
    piece(address + i * sizeof(std::uint32_t), words, std::uint32_t(i));
  }
}

}  // namespace

void SimWork::fill(Stream stream, Address address, std::size_t bytes, std::uint32_t seed) {
  const auto effect = [=](MemoryView& memory) {
    inPieces(address, bytes, [&](Address at, std::span<std::uint32_t> words, std::uint32_t first) {
      makeWords(words, seed + first);
      memory.write(at, words.data(), words.size_bytes());
    });
  };
  device_.launch(stream, {"fill", {{address, bytes, AccessKind::kWrite}}, kKernelNs, effect})
      .orThrow();
}

void SimWork::verify(Stream stream, Address address, std::size_t bytes, std::uint32_t seed) {
  const auto effect = [=, this](MemoryView& memory) {
    inPieces(address, bytes, [&](Address at, std::span<std::uint32_t> words, std::uint32_t first) {
      memory.read(at, words.data(), words.size_bytes());
      wrong_words_ += wrongWords(words, seed + first);
    });
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
