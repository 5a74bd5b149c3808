// What a test on the played GPU relies on, by calls of AMD's runtime alone: bytes, order, memory
// that runs out, and accesses that fault.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <vector>

#include <hip/hip_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/catch.hpp"

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

void require(hipError_t result) { REQUIRE(result == hipSuccess); }

/// Device memory, and what it holds.
class Bytes {
 public:
  explicit Bytes(std::size_t count) : count_(count) { require(hipMalloc(&memory_, count)); }
  ~Bytes() { (void)hipFree(memory_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  char* at(std::size_t offset = 0) const { return static_cast<char*>(memory_) + offset; }
  std::vector<char> read() const {
    std::vector<char> read(count_);
    require(hipMemcpy(read.data(), memory_, count_, hipMemcpyDeviceToHost));
    return read;
  }

 private:
  std::size_t count_;
  void* memory_ = nullptr;
};

std::vector<char> counted(std::size_t count) {
  std::vector<char> made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = char(i * 7 + i / 251);
  return made;
}

/// The signal that ends a child which does this; 0 or less if none does. Its output is not shown.
template <class Action>
int endOf(Action action) {
  const pid_t child = fork();
  if (child == 0) {
    (void)freopen("/dev/null", "w", stderr);
    (void)signal(SIGABRT, SIG_DFL);
    (void)signal(SIGSEGV, SIG_DFL);
    action();
    _exit(0);
  }
  int status = 0;
  (void)waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

}  // namespace

// First, because the child begins with a runtime of its own only before this process has one.
TEST_CASE("freed memory, and the GPU's memory for the host, end a process that touches them") {
  void* freed = nullptr;
  CHECK(endOf([&] {
          void* other = nullptr;
          (void)hipMalloc(&freed, 4 * kMiB);
          (void)hipMalloc(&other, 4 * kMiB);
          (void)hipFree(freed);
          (void)hipMemcpyDtoDAsync(other, freed, 4 * kMiB, nullptr);
          (void)hipDeviceSynchronize();
        }) > 0);
  CHECK(endOf([] {
          void* memory = nullptr;
          (void)hipMalloc(&memory, kMiB);
          *static_cast<volatile char*>(memory) = 1;
        }) == SIGSEGV);
  CHECK(endOf([] {
          void* memory = nullptr;
          if (hipMalloc(&memory, kMiB) != hipSuccess || hipFree(memory) != hipSuccess) _exit(1);
        }) == 0);
}

TEST_CASE("memory is set, in bytes, words and rows, and nothing beside it") {
  Bytes memory(kMiB);
  require(hipMemset(memory.at(), 1, kMiB));
  require(hipMemset(memory.at(3), 2, 1001));
  require(hipMemsetD32(memory.at(8192), 0x01020304, 100));
  require(hipMemset2D(memory.at(65536), 1000, 5, 33, 7));
  std::vector<char> expected(kMiB, 1);
  std::memset(expected.data() + 3, 2, 1001);
  const std::uint32_t word = 0x01020304;
  for (int i = 0; i < 100; ++i) std::memcpy(expected.data() + 8192 + 4 * i, &word, 4);
  for (int row = 0; row < 7; ++row) std::memset(expected.data() + 65536 + 1000 * row, 5, 33);
  CHECK(memory.read() == expected);
}

TEST_CASE("copies bring each byte, of every alignment and size") {
  const std::vector<char> source = counted(9 * kMiB);
  Bytes from(9 * kMiB), to(9 * kMiB);
  require(hipMemcpy(from.at(), source.data(), source.size(), hipMemcpyHostToDevice));
  CHECK(from.read() == source);
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{3}, std::size_t{4096}, 5 * kMiB + 1}) {
    for (const std::size_t shift : {0, 1, 5}) {
      std::vector<char> expected(9 * kMiB, 9);
      require(hipMemset(to.at(), 9, 9 * kMiB));
      require(hipMemcpy(to.at(2 * shift), from.at(shift), bytes, hipMemcpyDeviceToDevice));
      std::memcpy(expected.data() + 2 * shift, source.data() + shift, bytes);
      CHECK((to.read() == expected));
    }
  }
}

TEST_CASE("rows are copied between pitches") {
  const std::vector<char> source = counted(64 * 1024);
  Bytes memory(64 * 1024);
  require(hipMemset(memory.at(), 0, 64 * 1024));
  require(hipMemcpy2D(memory.at(), 512, source.data(), 100, 60, 20, hipMemcpyHostToDevice));
  std::vector<char> expected(64 * 1024, 0), back(20 * 60), rows;
  for (std::size_t row = 0; row < 20; ++row) {
    std::memcpy(expected.data() + 512 * row, source.data() + 100 * row, 60);
    rows.insert(rows.end(), source.data() + 100 * row, source.data() + 100 * row + 60);
  }
  CHECK((memory.read() == expected));
  require(hipMemcpy2D(back.data(), 60, memory.at(), 512, 60, 20, hipMemcpyDeviceToHost));
  CHECK((back == rows));
}

TEST_CASE("a request beyond the GPU's memory is refused, and served when there is room") {
  hipDeviceProp_t properties{};
  require(hipGetDeviceProperties(&properties, 0));
  const std::size_t half = properties.totalGlobalMem / 2 + kMiB;
  void *first = nullptr, *second = nullptr;
  require(hipMalloc(&first, half));
  CHECK(hipMalloc(&second, half) == hipErrorOutOfMemory);
  (void)hipGetLastError();
  require(hipFree(first));
  require(hipMalloc(&second, half));
  require(hipFree(second));
}

TEST_CASE("work of a stream is in order, and other streams are ordered by events alone") {
  hipStream_t one = nullptr, other = nullptr;
  hipEvent_t event = nullptr;
  require(hipStreamCreateWithFlags(&one, hipStreamNonBlocking));
  require(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
  require(hipEventCreateWithFlags(&event, hipEventDisableTiming));
  Bytes memory(kMiB), copy(kMiB);
  for (int value = 1; value < 40; ++value) {
    require(hipMemsetAsync(memory.at(), value, kMiB, one));
    require(hipEventRecord(event, one));
    require(hipStreamWaitEvent(other, event, 0));
    require(hipMemcpyAsync(copy.at(), memory.at(), kMiB, hipMemcpyDeviceToDevice, other));
    require(hipStreamSynchronize(other));
    CHECK((copy.read() == std::vector<char>(kMiB, char(value))));
  }
  require(hipEventDestroy(event));
  require(hipStreamDestroy(one));
  require(hipStreamDestroy(other));
}

TEST_CASE("a function of the host is called when the stream has come to it") {
  hipStream_t stream = nullptr;
  require(hipStreamCreate(&stream));
  int called = 0;
  require(hipStreamAddCallback(
      stream, [](hipStream_t, hipError_t, void* count) { ++*static_cast<int*>(count); }, &called,
      0));
  require(hipStreamSynchronize(stream));
  CHECK(called == 1);
  require(hipStreamDestroy(stream));
}
