// A libnvidia-ml.so.1 with one GPU of 1 GiB. The folder that FAKE_SAVING_DRIVER names has a file
// `memory` with lines: a process and its bytes while it does not sleep.
#include <cstdlib>
#include <fstream>
#include <string>

namespace {

struct Memory {
  unsigned long long total, free, used;
};
struct ProcessInfo {
  unsigned pid;
  unsigned long long used;
  unsigned instance, part;
};

std::string file(const std::string& name) {
  const char* const folder = std::getenv("FAKE_SAVING_DRIVER");
  return std::string(folder != nullptr ? folder : ".") + "/" + name;
}

/// Calls with each process that has memory, and its bytes.
template <class Visit>
void eachProcess(Visit visit) {
  std::ifstream memory(file("memory"));
  unsigned long long bytes = 0;
  for (unsigned pid = 0; memory >> pid >> bytes;) {
    int state = 0;
    std::ifstream(file(std::to_string(pid))) >> state;
    if (state != 2) visit(pid, bytes);
  }
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 1;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned, void** device) {
  *device = nullptr;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, void* told) {
  auto& memory = *static_cast<Memory*>(told);
  memory = {1ULL << 30, 1ULL << 30, 0};
  eachProcess([&](unsigned, unsigned long long bytes) { memory.free -= bytes; });
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void* told) {
  auto* const all = static_cast<ProcessInfo*>(told);
  unsigned filled = 0;
  eachProcess([&](unsigned pid, unsigned long long bytes) {
    if (std::getenv("FAKE_OTHER_NAMESPACE") == nullptr && filled < *count)
      all[filled++] = {pid, bytes, 0, 0};
  });
  *count = filled;
  return 0;
}

}  // extern "C"
#pragma GCC visibility pop
