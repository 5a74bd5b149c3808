// Allocates and frees in a loop, uses what it gets, and says what the calls took. As built: with
// the static runtime or the shared one.
#include <chrono>
#include <cstdio>
#include <vector>

#include <cuda_runtime.h>

namespace {

using Clock = std::chrono::steady_clock;
double spent = 0;  // in allocation calls, in us

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("RESULT wrong: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  const Clock::time_point begin = Clock::now();
  const cudaError_t error = cudaMalloc(&memory, bytes);
  spent += std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  check(error, "cudaMalloc");
  return memory;
}
void release(void* memory) {
  const Clock::time_point begin = Clock::now();
  const cudaError_t error = cudaFree(memory);
  spent += std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  check(error, "cudaFree");
}

__global__ void fill(unsigned* words, std::size_t count, unsigned seed) {
  const std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x;
  if (i < count) words[i] = seed + unsigned(i);
}

}  // namespace

int main() {
  constexpr int kRounds = 2000, kLive = 8;
  release(allocate(1 << 20));  // the context is made here
  spent = 0;
  bool right = true;
  std::vector<unsigned*> live(kLive);
  std::vector<std::size_t> words(kLive);
  std::vector<unsigned> back(1 << 20);
  for (int i = 0; i < kRounds; ++i) {
    const int slot = i % kLive;
    if (live[slot] != nullptr) {
      const std::size_t some = words[slot] < back.size() ? words[slot] : back.size();
      if (i % 50 == 0) {
        check(cudaMemcpy(back.data(), live[slot], some * 4, cudaMemcpyDeviceToHost), "copy");
        for (std::size_t k = 0; k < some; ++k)
          right &= back[k] == unsigned(i - kLive) + unsigned(k);
      }
      release(live[slot]);
    }
    words[slot] = (std::size_t(128) << (i * 7 % 17)) + 13;  // 512 B to 32 MiB, and a little
    live[slot] = static_cast<unsigned*>(allocate(words[slot] * 4));
    fill<<<unsigned((words[slot] + 255) / 256), 256>>>(live[slot], words[slot], unsigned(i));
    if (i % 4 == 0)
      check(cudaDeviceSynchronize(), "the device");  // so that frees need not wait for long
  }
  for (unsigned* memory : live) release(memory);
  check(cudaDeviceSynchronize(), "the device");
  std::printf("RESULT %s\nMETRIC us_per_pair %.4f\n", right ? "right" : "wrong", spent / kRounds);
  return right ? 0 : 1;
}
