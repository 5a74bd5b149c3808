// What do CUDA calls do with a stream that was destroyed: return an error, succeed, or crash?
// Each (call, reuse pattern) runs in a forked child of its own; the parent never touches CUDA.
//   nvcc -std=c++17 -O1 -o /tmp/destroyed_stream .probe/destroyed_stream.cu && /tmp/destroyed_stream
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr int kStreams = 64;

struct Setup {
  cudaStream_t live = nullptr;    // never destroyed
  cudaStream_t dead = nullptr;    // destroyed
  cudaEvent_t event = nullptr;
};

void must(cudaError_t e, const char* what) {
  if (e == cudaSuccess) return;
  std::printf("set-up failed: %s: %s\n", what, cudaGetErrorName(e));
  std::fflush(stdout);
  _exit(3);
}

// how: 0 = destroyed at once; 1 = after work was queued and waited for; 2 = destroyed with work still
// queued; 3 = destroyed, then as many created anew (the handle's memory may be in use again).
__global__ void spin(long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
}

Setup prepare(int how) {
  Setup s;
  must(cudaFree(nullptr), "cudaFree(0)");
  must(cudaStreamCreateWithFlags(&s.live, cudaStreamNonBlocking), "live stream");
  must(cudaEventCreateWithFlags(&s.event, cudaEventDisableTiming), "event");
  std::vector<cudaStream_t> streams(kStreams);
  for (auto& x : streams) must(cudaStreamCreateWithFlags(&x, cudaStreamNonBlocking), "stream");
  for (auto& x : streams) {
    if (how == 1) spin<<<1, 1, 0, x>>>(1000);
    if (how == 2) spin<<<1, 1, 0, x>>>(200000000);
  }
  if (how == 1) must(cudaDeviceSynchronize(), "synchronize");
  s.dead = streams[kStreams / 2];
  for (auto& x : streams) must(cudaStreamDestroy(x), "destroy");
  if (how == 3) {
    bool same = false;
    for (auto& x : streams) {
      must(cudaStreamCreateWithFlags(&x, cudaStreamNonBlocking), "stream again");
      same = same || x == s.dead;
    }
    std::printf("[handle value handed out again: %s] ", same ? "yes" : "no");
  }
  return s;
}

using Probe = cudaError_t (*)(Setup&);

cudaError_t eventRecord(Setup& s) { return cudaEventRecord(s.event, s.dead); }
cudaError_t streamQuery(Setup& s) { return cudaStreamQuery(s.dead); }
cudaError_t isCapturing(Setup& s) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(s.dead, &status);
}
cudaError_t captureInfo(Setup& s) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  return cudaStreamGetCaptureInfo(s.dead, &status, &id, nullptr, nullptr, nullptr, nullptr);
}
cudaError_t getId(Setup& s) {
  unsigned long long id = 0;
  unsigned long long live = 0;
  must(cudaStreamGetId(s.live, &live), "id of the live stream");
  const cudaError_t e = cudaStreamGetId(s.dead, &id);
  std::printf("[id %llu, live %llu] ", id, live);
  return e;
}
cudaError_t waitEvent(Setup& s) {
  must(cudaEventRecord(s.event, s.live), "record on the live stream");
  return cudaStreamWaitEvent(s.dead, s.event, 0);
}
cudaError_t synchronize(Setup& s) { return cudaStreamSynchronize(s.dead); }
cudaError_t destroyAgain(Setup& s) { return cudaStreamDestroy(s.dead); }
cudaError_t launch(Setup& s) {
  spin<<<1, 1, 0, s.dead>>>(10);
  return cudaGetLastError();
}

struct Row {
  const char* name;
  Probe probe;
};
const Row kRows[] = {{"cudaEventRecord", eventRecord},
                     {"cudaStreamQuery", streamQuery},
                     {"cudaStreamIsCapturing", isCapturing},
                     {"cudaStreamGetCaptureInfo", captureInfo},
                     {"cudaStreamGetId", getId},
                     {"cudaStreamWaitEvent", waitEvent},
                     {"cudaStreamSynchronize", synchronize},
                     {"cudaStreamDestroy", destroyAgain},
                     {"kernel launch", launch}};
const char* const kHow[] = {"destroyed idle", "destroyed after work", "destroyed with work queued",
                            "destroyed, others created"};

[[noreturn]] void child(const Row& row, int how) {
  alarm(30);
  Setup s = prepare(how);
  const cudaError_t first = row.probe(s);
  std::printf("%s (%d)", cudaGetErrorName(first), int(first));
  std::fflush(stdout);
  (void)cudaGetLastError();
  const cudaError_t again = row.probe(s);
  (void)cudaGetLastError();
  const cudaError_t after = cudaDeviceSynchronize();
  std::printf("; again %s (%d); device after: %s\n", cudaGetErrorName(again), int(again),
              cudaGetErrorName(after));
  std::fflush(stdout);
  _exit(0);
}

}  // namespace

int main() {
  for (int how = 0; how < 4; ++how) {
    std::printf("-- %s\n", kHow[how]);
    for (const Row& row : kRows) {
      std::printf("%-26s ", row.name);
      std::fflush(stdout);
      const pid_t pid = fork();
      if (pid < 0) return std::perror("fork"), 1;
      if (pid == 0) child(row, how);
      int status = 0;
      waitpid(pid, &status, 0);
      if (WIFSIGNALED(status)) std::printf(" CRASH: %s\n", strsignal(WTERMSIG(status)));
      std::fflush(stdout);
    }
  }
  return 0;
}
