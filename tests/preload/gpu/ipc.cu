// Two processes that share cudaMalloc's memory: one allocates, fills and gives handles
// (cudaIpcGetMemHandle); the other, a child that was forked before either came to CUDA, opens each
// twice, checks what it reads, writes its own, and closes. Then the first checks that, frees, and
// gives handles of what comes to lie there. What is right is said, and what a handle takes: to make
// one, and to open and close it.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBlocks = 40, kRounds = 3;

int channel = -1;
const char* who = "the first";

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("RESULT wrong: %s, %s: %s\n", who, what, cudaGetErrorString(error));
  std::fflush(stdout);
  std::_Exit(1);
}

template <class T>
void tell(const T& what) {
  if (write(channel, &what, sizeof what) != ssize_t(sizeof what)) std::_Exit(1);
}
template <class T>
T told() {
  T got{};
  if (recv(channel, &got, sizeof got, MSG_WAITALL) != ssize_t(sizeof got)) std::_Exit(1);
  return got;
}

// From 1 KiB to 64 MiB, and none a power of two.
std::size_t wordsOf(int block) { return (std::size_t(256) << block % 17) + 3 * block; }

__global__ void fill(unsigned* words, std::size_t count, unsigned seed) {
  const std::size_t step = std::size_t(gridDim.x) * blockDim.x;
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
    words[i] = seed + unsigned(i);
}
__global__ void compare(const unsigned* words, std::size_t count, unsigned seed, unsigned* wrong) {
  const std::size_t step = std::size_t(gridDim.x) * blockDim.x;
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
    if (words[i] != seed + unsigned(i)) atomicAdd(wrong, 1u);
}

unsigned seedOf(int round, int block, bool answered) {
  return unsigned(round * 1000 + block * 2 + int(answered)) * 7919u;
}

/// Counts words that are not as they should be.
class Wrong {
 public:
  Wrong() {
    check(cudaMalloc(&count_, sizeof *count_), "cudaMalloc");
    check(cudaMemset(count_, 0, sizeof *count_), "cudaMemset");
  }
  unsigned* count() { return count_; }
  unsigned read() {
    unsigned wrong = 0;
    check(cudaMemcpy(&wrong, count_, sizeof wrong, cudaMemcpyDeviceToHost), "the kernels");
    return wrong;
  }

 private:
  unsigned* count_ = nullptr;
};

double microseconds(Clock::time_point since) {
  return std::chrono::duration<double, std::micro>(Clock::now() - since).count();
}

void open() {
  who = "the other";
  double took = 0;
  Wrong wrong;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<cudaIpcMemHandle_t> handles;
    for (int i = 0; i < kBlocks; ++i) handles.push_back(told<cudaIpcMemHandle_t>());
    std::vector<unsigned*> blocks;
    const auto begin = Clock::now();
    for (const cudaIpcMemHandle_t& handle : handles) {
      void* block = nullptr;
      check(cudaIpcOpenMemHandle(&block, handle, cudaIpcMemLazyEnablePeerAccess), "opening");
      blocks.push_back(static_cast<unsigned*>(block));
    }
    took += microseconds(begin);
    for (int i = 0; i < kBlocks; ++i) {
      void* again = nullptr;
      check(cudaIpcOpenMemHandle(&again, handles[i], cudaIpcMemLazyEnablePeerAccess), "again");
      if (again != blocks[i]) check(cudaErrorUnknown, "opened twice at two addresses");
      compare<<<64, 256>>>(blocks[i], wordsOf(i), seedOf(round, i, false), wrong.count());
      fill<<<64, 256>>>(blocks[i], wordsOf(i), seedOf(round, i, true));
      check(cudaIpcCloseMemHandle(again), "closing");
    }
    check(cudaDeviceSynchronize(), "the kernels");
    const auto end = Clock::now();
    for (unsigned* const block : blocks) check(cudaIpcCloseMemHandle(block), "closing");
    took += microseconds(end);
    tell(wrong.read());
  }
  tell(took / (kBlocks * kRounds));
}

void give(pid_t child) {
  double took = 0;
  Wrong wrong;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<unsigned*> blocks(kBlocks);
    for (int i = 0; i < kBlocks; ++i) {
      check(cudaMalloc(&blocks[i], wordsOf(i) * sizeof(unsigned)), "cudaMalloc");
      fill<<<64, 256>>>(blocks[i], wordsOf(i), seedOf(round, i, false));
    }
    check(cudaDeviceSynchronize(), "the kernels");
    std::vector<cudaIpcMemHandle_t> handles(kBlocks);
    const auto begin = Clock::now();
    for (int i = 0; i < kBlocks; ++i)
      check(cudaIpcGetMemHandle(&handles[i], blocks[i]), "cudaIpcGetMemHandle");
    took += microseconds(begin);
    for (const cudaIpcMemHandle_t& handle : handles) tell(handle);
    const auto other_found = told<unsigned>();
    if (other_found != 0) check(cudaErrorUnknown, "the other has read what was not written");
    for (int i = 0; i < kBlocks; ++i)
      compare<<<64, 256>>>(blocks[i], wordsOf(i), seedOf(round, i, true), wrong.count());
    if (wrong.read() != 0) check(cudaErrorUnknown, "what the other has written is not there");
    for (unsigned* const block : blocks) check(cudaFree(block), "cudaFree");
  }
  const auto opening = told<double>();
  int status = -1;
  const bool ended = waitpid(child, &status, 0) == child && status == 0;
  std::printf("RESULT %s\nMETRIC us_open_close %.1f\n", ended ? "right" : "wrong: the other ended",
              opening);
  std::printf("a handle: %.1f us\n", took / (kBlocks * kRounds));
}

}  // namespace

int main() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
  const pid_t child = fork();
  channel = ends[child == 0 ? 0 : 1];
  (void)close(ends[child == 0 ? 1 : 0]);
  if (child == 0) {
    open();
  } else {
    give(child);
  }
  return 0;
}
