// What comes behind a cudaFree comes after what was there before it, and after nothing else: work
// that was submitted behind the cudaFree may wait for other work behind it, on another stream, and
// so may the host. A kernel here waits until the host says go; the host does so when a second
// stream has used the memory that was freed. Were the second made to wait for the first, neither
// would go on: after half a second the kernel gives up.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

namespace {

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("RESULT wrong: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

__global__ void touch(unsigned* word) { *word += 1; }

__global__ void waitForGo(volatile unsigned* go, unsigned* gave_up, unsigned* uses) {
  *uses += 1;
  const long long begin = clock64();
  while (*go == 0) {
    if (clock64() - begin > 1'000'000'000ll) {
      *gave_up = 1;
      return;
    }
  }
}

}  // namespace

int main() {
  unsigned* shared = nullptr;
  check(cudaHostAlloc(&shared, 8, cudaHostAllocMapped), "cudaHostAlloc");
  cudaStream_t one = nullptr, other = nullptr;
  check(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking), "a stream");
  check(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "a stream");
  bool right = true;
  unsigned *used = nullptr, *freed = nullptr, *again = nullptr;
  check(cudaMalloc(&used, 1 << 20), "cudaMalloc");
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < 5; ++round) {
    shared[0] = shared[1] = 0;
    check(cudaMalloc(&freed, 1 << 20), "cudaMalloc");
    touch<<<1, 1, 0, one>>>(freed);
    touch<<<1, 1, 0, other>>>(freed + 1);
    check(cudaFree(freed), "cudaFree");
    waitForGo<<<1, 1, 0, one>>>(shared, shared + 1, used);
    check(cudaMalloc(&again, 1 << 20), "cudaMalloc");
    touch<<<1, 1, 0, other>>>(again);
    check(cudaStreamSynchronize(other), "the stream");
    *static_cast<volatile unsigned*>(shared) = 1;
    check(cudaStreamSynchronize(one), "the stream");
    right &= shared[1] == 0;
    check(cudaFree(again), "cudaFree");
  }
  const double took =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  std::printf("RESULT %s\nMETRIC us_per_round %.2f\n", right ? "right" : "wrong: held back",
              took / 5);
  return right ? 0 : 1;
}
