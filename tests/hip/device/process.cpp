#include "tests/hip/device/process.hpp"

#include <atomic>
#include <map>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/hip/device/kernels.hpp"
#include "tests/hip/device/settings.hpp"
#include "tests/hip/device/topology.hpp"

namespace played {
namespace {

// A forked child keeps its parent's descriptors, so both have the same files. Each process's
// buffers have a part of the memory file to themselves.
constexpr off_t kMemoryFileBytes = off_t{1} << 62;
constexpr int kPartOfAProcess = 40;  // the bits of an offset in it
constexpr off_t kDriverFileBytes = off_t{1} << 40;

std::mutex files_mutex;
int memory_file = -1;
int driver_file = -1;
std::map<int, int> render_nodes;  // descriptor -> GPU
std::atomic<Process*> state{nullptr};

int makeFile(const char* name, off_t bytes) {
  const int made = memfd_create(name, MFD_CLOEXEC);
  if (made >= 0) (void)ftruncate(made, bytes);
  return made;
}

// The files' own descriptors stay open; whoever opens one gets another.
void needFiles() {
  if (memory_file < 0) memory_file = makeFile("played-gpu-memory", kMemoryFileBytes);
  if (driver_file < 0) driver_file = makeFile("played-gpu-driver", kDriverFileBytes);
}

void beforeFork() {
  files_mutex.lock();
  lockKernels();
}
void afterFork() {
  unlockKernels();
  files_mutex.unlock();
}
void beginChild() {
  state.store(nullptr);
  afterFork();
}

void makeState() {
  static bool handles_forks = false;
  if (!handles_forks) (void)pthread_atfork(beforeFork, afterFork, beginChild);
  handles_forks = true;
  addRuntimesKernels();
  const std::uint64_t first = std::uint64_t(getpid()) << kPartOfAProcess;
  state.store(new Process(memory_file, first, settings().gpus));
}

}  // namespace

Process* process() { return state.load(); }

int openDriver() {
  const std::lock_guard lock(files_mutex);
  needFiles();
  if (state.load() == nullptr) makeState();
  return fcntl(driver_file, F_DUPFD_CLOEXEC, 0);
}

int openRenderNode(int number) {
  const std::lock_guard lock(files_mutex);
  needFiles();
  const int opened = fcntl(memory_file, F_DUPFD_CLOEXEC, 0);
  render_nodes[opened] = number - kFirstRenderNode;
  return opened;
}

int gpuOfRenderNode(int descriptor) {
  const std::lock_guard lock(files_mutex);
  const auto found = render_nodes.find(descriptor);
  return found == render_nodes.end() ? 0 : found->second;
}

bool isDriver(int descriptor) {
  if (driver_file < 0) return false;
  struct stat ours, theirs;
  return fstat(driver_file, &ours) == 0 && fstat(descriptor, &theirs) == 0 &&
         ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

// The low half of the number is the place in the GPU's pages of doorbells: libhsakmt takes it for
// that when the first queue is made, before it knows how many pages there are.
std::uint64_t doorbellsOf(int gpu) { return (std::uint64_t(gpu) + 1) << 32; }

}  // namespace played
