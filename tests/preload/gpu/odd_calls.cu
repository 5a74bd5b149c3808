// What a program may do to its memory that most do not: errors, ends of contexts, other devices'
// streams, captures, host functions. RESULT is what each call answered and each copy brought back,
// so it has to be the same with and without Cistern.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include <cuda.h>
#include <cuda_runtime.h>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::string said;

/// Adds what a call answered; the runtime's last error is asked too, as a program's next launch
/// would.
void say(const char* what, int answer) {
  const int last = cudaGetLastError();
  said += std::string(said.empty() ? "" : " ") + what + "=" + std::to_string(answer);
  if (last != answer) said += "/" + std::to_string(last);
}

template <class Function>
Function* driver(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status{};
  // As of CUDA 11.0: what is asked for here had the same arguments ever since, but for cuCtxCreate.
  if (cudaGetDriverEntryPointByVersion(name, &found, 11000, cudaEnableDefault, &status) !=
          cudaSuccess ||
      found == nullptr) {
    std::printf("RESULT wrong: no %s\n", name);
    std::exit(1);
  }
  return reinterpret_cast<Function*>(found);
}

__global__ void read(const unsigned* from, unsigned* to) { *to = *from; }

/// The word at `from`, which a kernel on the current device reads.
unsigned readBack(const void* from) {
  unsigned *to = nullptr, word = 0;
  cudaHostAlloc(&to, sizeof word, cudaHostAllocPortable | cudaHostAllocMapped);
  read<<<1, 1>>>(static_cast<const unsigned*>(from), to);
  const int answer = cudaDeviceSynchronize();
  word = answer == cudaSuccess ? *to : unsigned(answer) << 24;
  cudaFreeHost(to);
  return word;
}

void frees() {
  char *block = nullptr, *other = nullptr;
  say("malloc", cudaMalloc(&block, kMiB));
  say("free_inside", cudaFree(block + 1));
  say("free_in_its_middle", cudaFree(block + kMiB / 2));
  say("free", cudaFree(block));
  say("free_none", cudaFree(nullptr));
  int here = 0;
  say("free_host", cudaFree(&here));
  say("malloc_0", cudaMalloc(&other, 0));
  said += other == nullptr ? " none" : " some";
  say("malloc_huge", cudaMalloc(&other, std::size_t{1} << 50));
  say("malloc_nowhere", cudaMalloc(static_cast<void**>(nullptr), kMiB));
  say("async", cudaMallocAsync(&block, kMiB, nullptr));
  say("free_of_async", cudaFree(block));
  say("malloc", cudaMalloc(&block, kMiB));
  say("async_free_of_malloc", cudaFreeAsync(block, nullptr));
  say("sync", cudaDeviceSynchronize());
}

void attributes() {
  char* block = nullptr;
  say("malloc", cudaMalloc(&block, 3 * kMiB));
  cudaPointerAttributes of{};
  say("attributes", cudaPointerGetAttributes(&of, block + 100));
  said += " type=" + std::to_string(of.type) + " device=" + std::to_string(of.device) +
          (of.devicePointer == block + 100 ? " same" : " another");
  CUdeviceptr base = 0;
  std::size_t size = 0;
  say("range", driver<decltype(cuMemGetAddressRange)>("cuMemGetAddressRange")(
                   &base, &size, reinterpret_cast<CUdeviceptr>(block + 5)));
  said += base == reinterpret_cast<CUdeviceptr>(block) ? " begin" : " elsewhere";
  said += size >= 3 * kMiB ? " whole" : " part";
  say("free", cudaFree(block));
}

void captures() {
  cudaStream_t stream = nullptr;
  say("stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (auto mode : {cudaStreamCaptureModeRelaxed, cudaStreamCaptureModeThreadLocal,
                    cudaStreamCaptureModeGlobal}) {
    say("begin", cudaStreamBeginCapture(stream, mode));
    void *block = nullptr, *node = nullptr;
    say("malloc", cudaMalloc(&block, kMiB));
    say("async", cudaMallocAsync(&node, kMiB, stream));
    if (node != nullptr) {
      say("memset", cudaMemsetAsync(node, 1, kMiB, stream));
      say("free_async", cudaFreeAsync(node, stream));
    }
    cudaGraph_t graph = nullptr;
    say("end", cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t exec = nullptr;
    if (graph != nullptr) {
      say("make", cudaGraphInstantiate(&exec, graph, 0));
      say("launch", cudaGraphLaunch(exec, stream));
      say("sync", cudaStreamSynchronize(stream));
      cudaGraphExecDestroy(exec);
      cudaGraphDestroy(graph);
    }
    if (block != nullptr) say("free", cudaFree(block));
  }
  say("destroy", cudaStreamDestroy(stream));
}

void hostFunctions() {
  static void* block = nullptr;
  static int answers[2];
  say("malloc", cudaMalloc(&block, kMiB));
  auto calls = [](void*) {
    void* more = nullptr;
    answers[0] = cudaMalloc(&more, kMiB);
    answers[1] = cudaFree(block);
  };
  say("host_function", cudaLaunchHostFunc(nullptr, calls, nullptr));
  say("sync", cudaDeviceSynchronize());
  said += " in_it=" + std::to_string(answers[0]) + "," + std::to_string(answers[1]);
  if (answers[1] != cudaSuccess) say("free", cudaFree(block));
}

/// Contexts of the driver come and go; what they leave must not stay with the device.
void contexts() {
  auto* create = driver<CUresult(CUcontext*, unsigned, CUdevice)>("cuCtxCreate");
  auto* destroy = driver<decltype(cuCtxDestroy)>("cuCtxDestroy");
  auto* allocate = driver<decltype(cuMemAlloc)>("cuMemAlloc");
  auto* give_back = driver<decltype(cuMemFree)>("cuMemFree");
  auto* set = driver<decltype(cuMemsetD32)>("cuMemsetD32");
  auto* copy = driver<decltype(cuMemcpyDtoH)>("cuMemcpyDtoH");
  int wrong = 0;
  for (unsigned i = 0; i < 8; ++i) {
    CUcontext context = nullptr;
    wrong += create(&context, 0, 0) != CUDA_SUCCESS;
    CUdeviceptr kept = 0, freed = 0;
    wrong += allocate(&kept, 8192 * kMiB) != CUDA_SUCCESS;
    wrong += allocate(&freed, 4096 * kMiB) != CUDA_SUCCESS;
    unsigned word = 0;
    wrong += set(kept + kMiB, i + 7, 1) != CUDA_SUCCESS;
    wrong += copy(&word, kept + kMiB, sizeof word) != CUDA_SUCCESS;
    wrong += word != i + 7;
    wrong += give_back(freed) != CUDA_SUCCESS;
    wrong += destroy(context) != CUDA_SUCCESS;  // with `kept`
  }
  said += " contexts_wrong=" + std::to_string(wrong);
  std::size_t free = 0, total = 0;
  say("info", cudaMemGetInfo(&free, &total));
  said += free > total / 4 * 3 ? " most_free" : " little_free";
}

void twoDevices() {
  int devices = 0;
  cudaGetDeviceCount(&devices);
  if (devices < 2) return;
  cudaStream_t theirs = nullptr;
  unsigned *block = nullptr, *mine = nullptr;
  cudaSetDevice(1);
  say("their_stream", cudaStreamCreateWithFlags(&theirs, cudaStreamNonBlocking));
  cudaSetDevice(0);
  for (int round = 0; round < 3; ++round) {
    say("async_there", cudaMallocAsync(&block, kMiB, theirs));
    say("memset", cudaMemsetAsync(block, round + 1, kMiB, theirs));
    unsigned word = 0;
    say("copy", cudaMemcpyAsync(&word, block, sizeof word, cudaMemcpyDefault, theirs));
    say("sync", cudaStreamSynchronize(theirs));
    said += " word=" + std::to_string(word);
    say("free_async", cudaFreeAsync(block, theirs));
  }
  say("malloc", cudaMalloc(&mine, 64 * kMiB));
  say("memset", cudaMemset(mine, 5, 64 * kMiB));
  cudaSetDevice(1);
  say("peer", cudaDeviceEnablePeerAccess(0, 0));
  say("peer_again", cudaDeviceEnablePeerAccess(0, 0));
  said += " read=" + std::to_string(readBack(mine + kMiB));
  unsigned* later = nullptr;
  cudaSetDevice(0);
  say("malloc", cudaMalloc(&later, 512 * kMiB));
  say("memset", cudaMemset(later, 6, 512 * kMiB));
  cudaSetDevice(1);
  said += " read=" + std::to_string(readBack(later + 100 * kMiB));
  std::thread([&] { cudaSetDevice(1), say("free_elsewhere", cudaFree(mine)); }).join();
  say("free", cudaFree(later));
  say("sync", cudaDeviceSynchronize());
  say("disable", cudaDeviceDisablePeerAccess(0));
  say("destroy", cudaStreamDestroy(theirs));
  cudaSetDevice(0);
}

void reset() {
  void *kept = nullptr, *next = nullptr;
  say("malloc", cudaMalloc(&kept, 256 * kMiB));
  say("reset", cudaDeviceReset());
  say("malloc", cudaMalloc(&next, 256 * kMiB));
  say("memset", cudaMemset(next, 9, 256 * kMiB));
  said += " read=" + std::to_string(readBack(next));
  say("free", cudaFree(next));
}

}  // namespace

int main() {
  cudaFree(nullptr);
  void (*const parts[])() = {frees,    attributes, captures, hostFunctions,
                             contexts, twoDevices, reset};
  for (auto part : parts) {
    part();
    said += " |";
  }
  std::printf("RESULT %s\n", said.c_str());
  return 0;
}
