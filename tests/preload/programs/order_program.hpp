// For order_program.cpp and random_program.cpp.
#pragma once

#include "tests/preload/programs/gpu_names.hpp"

// The thread allows itself what would be an error in a capture.
inline gpu::Stream beginCapture(gpu::Stream stream) {
  EXPECT(gpu::exchangeMode(kRelaxed) == 0);
  EXPECT(gpu::beginCapture(stream, kRelaxed) == 0);
  return stream;
}
inline gpu::Graph endCapture(gpu::Stream stream) {
  gpu::Graph graph = nullptr;
  EXPECT(gpu::endCapture(stream, &graph) == 0);
  EXPECT(gpu::exchangeMode(kGlobal) == 0);
  return graph;
}

/// Programs at random, by the seed in the environment: random_program.cpp.
void randomStreams();
void randomThreads();
