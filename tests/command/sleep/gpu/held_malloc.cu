// A program that knows nothing of Cistern: 1 GiB of cudaMalloc with a pattern, and 256 MiB that it
// has freed. held_malloc busy: a second thread launches kernels all the while, and each of them
// counts.
#include <atomic>
#include <cstring>
#include <thread>

#include "held.cuh"

namespace {

constexpr std::size_t kBytes = std::size_t{1} << 30, kFreed = std::size_t{256} << 20;

__global__ void count(unsigned long long* counter) { *counter += 1; }

/// Launches until it is told to stop; says how often.
struct Busy {
  unsigned long long* counter = nullptr;
  std::atomic<bool> stops{false};
  unsigned long long launches = 0;
  std::thread thread;

  void start() {
    check(cudaMalloc(&counter, sizeof *counter), "cudaMalloc");
    check(cudaMemset(counter, 0, sizeof *counter), "cudaMemset");
    thread = std::thread([this] {
      for (; !stops; ++launches) {
        count<<<1, 1>>>(counter);
        if (launches % 100 == 0) check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      }
    });
  }
  /// Whether each launch has counted.
  bool stop() {
    stops = true;
    thread.join();
    unsigned long long counted = 0;
    check(cudaMemcpy(&counted, counter, sizeof counted, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return counted == launches;
  }
};

}  // namespace

int main(int argc, char** argv) {
  unsigned* words = nullptr;
  unsigned long long* wrong = nullptr;
  void* freed = nullptr;
  check(cudaMalloc(&words, kBytes), "cudaMalloc");
  check(cudaMalloc(&wrong, sizeof *wrong), "cudaMalloc");
  check(cudaMalloc(&freed, kFreed), "cudaMalloc");
  check(cudaFree(freed), "cudaFree");
  fill<<<1024, 256>>>(words, kBytes / 4, 1);
  check(cudaDeviceSynchronize(), "fill");
  static Busy busy;
  const bool works = argc > 1 && std::strcmp(argv[1], "busy") == 0;
  if (works) busy.start();
  const int status = answerLines([&] { return wrongWords(words, kBytes / 4, 1, wrong); });
  if (works && !busy.stop()) std::puts("wrong count of launches");
  return status;
}
