// What the programs of run_all.py share: a pattern in memory of the GPU, and the lines that they
// take. "ready" when they hold their memory; then, for each line on the standard input, "right", or
// "wrong" and how many words.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include <cuda_runtime.h>

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("wrong %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

static __global__ void fill(unsigned* words, std::size_t count, unsigned seed) {
  const std::size_t step = gridDim.x * std::size_t(blockDim.x);
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < count; i += step)
    words[i] = (unsigned(i) + seed) * 2654435761u;
}

static __global__ void compare(const unsigned* words, std::size_t count, unsigned seed,
                               unsigned long long* wrong) {
  const std::size_t step = gridDim.x * std::size_t(blockDim.x);
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < count; i += step) {
    if (words[i] != (unsigned(i) + seed) * 2654435761u) atomicAdd(wrong, 1ull);
  }
}

/// How many words are not what fill() has written. `wrong`: a counter in memory of the GPU.
inline unsigned long long wrongWords(const unsigned* words, std::size_t count, unsigned seed,
                                     unsigned long long* wrong) {
  check(cudaMemset(wrong, 0, sizeof *wrong), "cudaMemset");
  compare<<<1024, 256>>>(words, count, seed, wrong);
  unsigned long long found = 0;
  check(cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return found;
}

/// Answers each line with what `look` finds wrong.
template <class Look>
int answerLines(Look look) {
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const unsigned long long wrong = look();
    if (wrong == 0)
      std::cout << "right" << std::endl;
    else
      std::cout << "wrong " << wrong << std::endl;
  }
  return 0;
}
