// Frees memory that a kernel is still using, and gives the next allocation to another stream:
// whoever hands it out too early mixes up what the two have written. Kinds of streams by the first
// argument: nonblocking, blocking, legacy, thread (per-thread default streams, on two threads).
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <cuda_runtime.h>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kWords = 1 << 20;
constexpr int kRounds = 200;
double spent = 0;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("RESULT wrong: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
template <class Call>
void timed(Call call, const char* what) {
  const Clock::time_point begin = Clock::now();
  const cudaError_t error = call();
  spent += std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  check(error, what);
}

// Writes, waits for so long, and counts words that are not as it wrote them.
__global__ void writeAndLook(volatile unsigned* words, unsigned seed, long long clocks,
                             unsigned* wrong) {
  const std::size_t first = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x;
  const std::size_t step = gridDim.x * std::size_t(blockDim.x);
  for (std::size_t i = first; i < kWords; i += step) words[i] = seed + unsigned(i);
  const long long begin = clock64();
  while (clock64() - begin < clocks) {
  }
  for (std::size_t i = first; i < kWords; i += step) {
    if (words[i] != seed + unsigned(i)) atomicAdd(wrong, 1u);
  }
}

cudaStream_t makeStream(const char* kind) {
  cudaStream_t made = nullptr;
  if (std::strcmp(kind, "nonblocking") == 0)
    check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "a stream");
  if (std::strcmp(kind, "blocking") == 0) check(cudaStreamCreate(&made), "a stream");
  if (std::strcmp(kind, "thread") == 0) made = cudaStreamPerThread;
  return made;
}

unsigned* wrong = nullptr;

void use(void* memory, cudaStream_t stream, unsigned seed) {
  // Few blocks, so that two kernels fit beside each other; about 300 us.
  writeAndLook<<<16, 256, 0, stream>>>(static_cast<unsigned*>(memory), seed, 500'000, wrong);
  check(cudaGetLastError(), "a launch");
}

void* allocate() {
  void* memory = nullptr;
  timed([&] { return cudaMalloc(&memory, kWords * 4); }, "cudaMalloc");
  return memory;
}
void release(void* memory) {
  timed([&] { return cudaFree(memory); }, "cudaFree");
}

}  // namespace

int main(int argc, char** argv) {
  const char* const kind = argc > 1 ? argv[1] : "nonblocking";
  check(cudaMalloc(&wrong, 4), "cudaMalloc");
  check(cudaMemset(wrong, 0, 4), "memset");
  const cudaStream_t one = makeStream(kind);
  const cudaStream_t other =
      std::strcmp(kind, "legacy") == 0 ? makeStream("nonblocking") : makeStream(kind);
  release(allocate());
  spent = 0;
  for (int i = 0; i < kRounds; ++i) {
    void* const first = allocate();
    use(first, i % 2 == 0 ? one : other, unsigned(2 * i) << 16);
    release(first);  // in use
    const auto second = [&] {
      void* const next = allocate();
      use(next, i % 2 == 0 ? other : one, unsigned(2 * i + 1) << 16);
      release(next);
    };
    if (std::strcmp(kind, "thread") == 0) {
      std::thread(second).join();  // a default stream of its own
    } else {
      second();
    }
  }
  check(cudaDeviceSynchronize(), "the device");
  unsigned found = 0;
  check(cudaMemcpy(&found, wrong, 4, cudaMemcpyDeviceToHost), "copy");
  std::printf("RESULT %s (%u words)\nMETRIC us_per_pair %.4f\n", found == 0 ? "right" : "wrong",
              found, spent / (2 * kRounds));
  return found == 0 ? 0 : 1;
}
