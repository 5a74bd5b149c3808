// Allocates half as much again as a limit, fills all of it by kernels, and looks whether it is
// there. Under `cistern run --conf limit:… --overflow …` a third of it lies in the host's memory.
//
// overflow LIMIT_IN_MIB. The same is expected of both runs, with Cistern and without.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kBlock = std::size_t(64) << 20;
constexpr std::size_t kWords = kBlock / sizeof(unsigned);

long submissions = 0;
int wrong_answers = 0;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("RESULT wrong: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
void expect(bool holds, const char* what, std::size_t block) {
  if (holds) return;
  std::printf("NOTE not so, of block %zu: %s\n", block, what);
  ++wrong_answers;
}

__global__ void write(unsigned* words, std::size_t count, unsigned seed) {
  const std::size_t step = gridDim.x * std::size_t(blockDim.x);
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < count; i += step)
    words[i] = seed + unsigned(i);
}
__global__ void increment(unsigned* words, std::size_t count) {
  const std::size_t step = gridDim.x * std::size_t(blockDim.x);
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < count; i += step)
    words[i] += 1;
}
__global__ void look(const unsigned* words, std::size_t count, unsigned seed, unsigned* wrong) {
  const std::size_t step = gridDim.x * std::size_t(blockDim.x);
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < count; i += step) {
    if (words[i] != seed + unsigned(i)) atomicAdd(wrong, 1u);
  }
}

struct Block {
  unsigned* words = nullptr;
  unsigned seed = 0;
};
std::vector<Block> blocks;
unsigned* wrong = nullptr;

// cudaMalloc's and cudaMallocAsync's by turns.
void allocate(std::size_t count, cudaStream_t stream) {
  for (std::size_t i = 0; i < count; ++i) {
    Block block{nullptr, unsigned(i) << 20};
    check(i % 4 != 3 ? cudaMalloc(&block.words, kBlock)
                     : cudaMallocAsync(&block.words, kBlock, stream),
          "memory");
    blocks.push_back(block);
  }
  check(cudaStreamSynchronize(stream), "the stream");
}

void ask() {
  std::size_t free_bytes = 0, total = 0;
  check(cudaMemGetInfo(&free_bytes, &total), "cudaMemGetInfo");
  expect(free_bytes <= total, "no more is free than there is", 0);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    unsigned* const inside = blocks[i].words + kWords / 2;
    cudaPointerAttributes of{};
    check(cudaPointerGetAttributes(&of, inside), "cudaPointerGetAttributes");
    expect(of.type == cudaMemoryTypeDevice, "it is the device's memory", i);
    expect(of.device == 0, "it is of device 0", i);
    expect(of.devicePointer == inside, "its device pointer is the pointer", i);
    expect(of.hostPointer == nullptr, "it has no host pointer", i);
  }
}

void lookAtAll(const char* when) {
  for (const Block& block : blocks) {
    look<<<256, 256>>>(block.words, kWords, block.seed, wrong);
    check(cudaGetLastError(), "a launch");
    ++submissions;
  }
  unsigned found = 0;
  check(cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDeviceToHost), when);
  ++submissions;
  if (found == 0) return;
  std::printf("RESULT wrong: %u words are others %s\n", found, when);
  std::exit(1);
}

double fill() {
  const Clock::time_point begin = Clock::now();
  for (const Block& block : blocks) {
    write<<<256, 256>>>(block.words, kWords, block.seed);
    check(cudaGetLastError(), "a launch");
    ++submissions;
  }
  check(cudaDeviceSynchronize(), "the device");
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// From the host and back, and from one block to another.
void copy() {
  std::vector<unsigned> words(kWords);
  Block& first = blocks.front();
  Block& last = blocks.back();
  for (std::size_t i = 0; i < kWords; ++i) words[i] = 7u + unsigned(i);
  check(cudaMemcpy(last.words, words.data(), kBlock, cudaMemcpyHostToDevice), "a copy to it");
  check(cudaMemcpy(first.words, last.words, kBlock, cudaMemcpyDeviceToDevice), "a copy from it");
  check(cudaMemset(last.words, 0, kBlock), "a set of it");
  check(cudaMemcpy(last.words, first.words, kBlock, cudaMemcpyDefault), "a copy by default");
  std::memset(words.data(), 0, kBlock);
  check(cudaMemcpy(words.data(), last.words, kBlock, cudaMemcpyDeviceToHost), "a copy back");
  submissions += 5;
  for (std::size_t i = 0; i < kWords; ++i) {
    if (words[i] == 7u + unsigned(i)) continue;
    expect(false, "it comes back as it went", blocks.size() - 1);
    break;
  }
  first.seed = last.seed = 7;
}

void replay(cudaStream_t stream, int times) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "a capture");
  for (Block& block : blocks) {
    increment<<<256, 256, 0, stream>>>(block.words, kWords);
    block.seed += unsigned(times);
    ++submissions;
  }
  check(cudaStreamEndCapture(stream, &graph), "the end of a capture");
  check(cudaGraphInstantiate(&ready, graph, 0), "a graph");
  for (int i = 0; i < times; ++i, ++submissions) check(cudaGraphLaunch(ready, stream), "a replay");
  check(cudaStreamSynchronize(stream), "the stream");
  check(cudaGraphExecDestroy(ready), "a graph");
  check(cudaGraphDestroy(graph), "a graph");
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t limit = std::size_t(argc > 1 ? std::atoi(argv[1]) : 2048) << 20;
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
  check(cudaMalloc(&wrong, sizeof *wrong), "cudaMalloc");
  check(cudaMemset(wrong, 0, sizeof *wrong), "cudaMemset");
  ++submissions;
  allocate(limit / 2 * 3 / kBlock, stream);
  ask();
  (void)fill();
  const double took = fill();
  lookAtAll("after they were written");
  copy();
  replay(stream, 3);
  lookAtAll("after a graph");
  for (const Block& block : blocks) check(cudaFree(block.words), "cudaFree");
  check(cudaFree(wrong), "cudaFree");
  check(cudaDeviceSynchronize(), "the device");
  std::printf(
      "RESULT %s\nMETRIC ms_to_fill %.3f\nSUBMISSIONS %ld\nNOTE %zu blocks of 64 MiB, %.1f GB/s\n",
      wrong_answers == 0 ? "right" : "wrong", took, submissions, blocks.size(),
      double(blocks.size() * kBlock) / 1e6 / took);
  return wrong_answers == 0 ? 0 : 1;
}
