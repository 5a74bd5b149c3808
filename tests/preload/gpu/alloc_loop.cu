// Allocates and frees in a loop, and says what the calls took. As built: with the static runtime or
// the shared one.
//
// alloc_loop SIZES STREAMS: SIZES is 1 or 2 (MiB, always) or mixed (512 B to 32 MiB, eight at a
// time); STREAMS is 0 (nothing is done with the memory), 1 (the default stream), or 2 (two that do
// not wait for each other, by turns). What is done is checked: a kernel writes, and a second one
// behind it looks whether anybody else has written since.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRounds = 4000;
double in_calls = 0, in_launches = 0;  // us
long submissions = 0;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("RESULT wrong: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
template <class Call>
void timed(double& spent, const char* what, Call call) {
  const Clock::time_point begin = Clock::now();
  const cudaError_t error = call();
  spent += std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  check(error, what);
}

__global__ void write(unsigned* words, std::size_t count, unsigned seed) {
  const std::size_t step = gridDim.x * std::size_t(blockDim.x);
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < count; i += step)
    words[i] = seed + unsigned(i);
}
__global__ void look(const unsigned* words, std::size_t count, unsigned seed, unsigned* wrong) {
  const std::size_t step = gridDim.x * std::size_t(blockDim.x);
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < count; i += step) {
    if (words[i] != seed + unsigned(i)) atomicAdd(wrong, 1u);
  }
}

unsigned* wrong = nullptr;
std::vector<cudaStream_t> streams;

std::size_t bytesOf(const char* sizes, int round) {
  if (std::strcmp(sizes, "mixed") == 0) return (std::size_t(512) << (round * 7 % 17)) + 52;
  return std::size_t(std::atoi(sizes)) << 20;
}

void use(unsigned* memory, std::size_t bytes, int round) {
  const cudaStream_t stream = streams[std::size_t(round) % streams.size()];
  const auto seed = unsigned(round) << 8;
  timed(in_launches, "a launch", [&] {
    write<<<64, 256, 0, stream>>>(memory, bytes / 4, seed);
    look<<<64, 256, 0, stream>>>(memory, bytes / 4, seed, wrong);
    return cudaGetLastError();
  });
  submissions += 2;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const sizes = argc > 1 ? argv[1] : "mixed";
  const int wanted = argc > 2 ? std::atoi(argv[2]) : 1;
  check(cudaMalloc(&wrong, 4), "cudaMalloc");
  check(cudaMemset(wrong, 0, 4), "cudaMemset");
  ++submissions;
  if (wanted == 1) streams.push_back(nullptr);
  for (int i = 0; wanted == 2 && i < 2; ++i) {
    streams.push_back(nullptr);
    check(cudaStreamCreateWithFlags(&streams.back(), cudaStreamNonBlocking), "a stream");
  }
  std::vector<unsigned*> live(std::strcmp(sizes, "mixed") == 0 ? 8 : 1);
  for (int round = -50; round < kRounds; ++round) {
    if (round == 0) in_calls = in_launches = 0;
    const int at = round + 50;
    unsigned*& slot = live[std::size_t(at) % live.size()];
    if (slot != nullptr) timed(in_calls, "cudaFree", [&] { return cudaFree(slot); });
    timed(in_calls, "cudaMalloc", [&] { return cudaMalloc(&slot, bytesOf(sizes, at)); });
    if (!streams.empty()) use(slot, bytesOf(sizes, at), at);
    // Now and then, so that cudaFree does not have to wait for long where it waits.
    if (at % 4 == 0 && !streams.empty()) check(cudaDeviceSynchronize(), "the device");
  }
  check(cudaDeviceSynchronize(), "the device");
  unsigned found = 0;
  check(cudaMemcpy(&found, wrong, 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
  ++submissions;
  std::printf(
      "RESULT %s\nMETRIC us_per_pair %.4f\nSUBMISSIONS %ld\nNOTE %.2f us a round in launches\n",
      found == 0 ? "right" : "wrong", in_calls / kRounds, submissions, in_launches / kRounds);
  return found == 0 ? 0 : 1;
}
