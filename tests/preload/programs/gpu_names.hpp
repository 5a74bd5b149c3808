// What the tests' programs ask of a GPU, for whichever vendor: the build says which (CISTERN_GPU).
//
//   on_the_runtime.hpp   the fake CUDA runtime, static or shared
//   on_the_driver.hpp    the fake CUDA driver itself
//   on_hip.hpp           the fake HIP runtime
//
// Each defines the same names. Codes are the vendors', which are alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "tests/preload/programs/expect.hpp"

using Memory = char*;

constexpr int kInvalidValue = 1, kOutOfMemory = 2;
constexpr int kCaptureUnsupported = 900, kCaptureInvalidated = 901;
constexpr int kGlobal = 0, kRelaxed = 2;  // modes of captures
constexpr unsigned kNonBlocking = 1;

constexpr std::size_t kBytes = 1 << 20;
constexpr unsigned long long kMillisecond = 1'000'000;

/// SERVED in the environment says that it runs under `cistern run`: some of what a program expects
/// is so only there, the rest in both.
inline bool served() { return std::getenv("SERVED") != nullptr; }
/// A number in the environment; 0 where there is none.
inline std::size_t number(const char* name) {
  const char* const given = std::getenv(name);
  return given == nullptr ? 0 : std::strtoull(given, nullptr, 10);
}

#include CISTERN_GPU

inline const auto kOwn = reinterpret_cast<gpu::Stream>(std::uintptr_t{2});  // the thread's own

inline Memory allocated(std::size_t bytes = kBytes) {
  Memory memory = nullptr;
  EXPECT(gpu::malloc(&memory, bytes) == 0);
  EXPECT(memory != nullptr);
  return memory;
}
inline gpu::Stream makeStream(unsigned flags) {
  gpu::Stream made = nullptr;
  EXPECT(gpu::createStream(&made, flags) == 0);
  return made;
}
inline void launch(gpu::Stream stream, Memory memory, std::size_t bytes = kBytes,
                   unsigned long long nanoseconds = kMillisecond) {
  EXPECT(gpu::launch(stream, memory, bytes, nanoseconds) == 0);
}
inline unsigned long long calls(const char* name) { return gpu::calls(name); }
