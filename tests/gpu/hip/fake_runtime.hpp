// What the fake runtime answers, and how its test knows it by.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cistern::test {

inline constexpr std::size_t kFakeMemory = std::size_t{1} << 30;
inline constexpr std::uintptr_t kFakeAddress = 0x7000'0000'0000;

}  // namespace cistern::test
