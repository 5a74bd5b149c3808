// What tests write to memory and expect to find there: word i of a block is its seed plus i.
#pragma once

#include <cstdint>
#include <span>

namespace cistern::test {

void makeWords(std::span<std::uint32_t> words, std::uint32_t seed);

/// How many of the words are not what makeWords makes.
std::uint64_t wrongWords(std::span<const std::uint32_t> words, std::uint32_t seed);

}  // namespace cistern::test
