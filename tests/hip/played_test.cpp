// What a test on the played GPU relies on, by calls of AMD's runtime, and by kernels where that
// checks addresses itself: bytes, order, memory that runs out, and accesses that fault.
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <hip/hip_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/catch.hpp"
#include "tests/support/vendor_work.hpp"

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

/// The end of a child process, and its standard error output.
struct End {
  int signal = 0;  ///< that ended it; minus its exit status, if none did
  std::string said;
};

template <class Action>
End endOf(Action action) {
  int pipe_ends[2] = {};
  REQUIRE(pipe(pipe_ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    (void)dup2(pipe_ends[1], STDERR_FILENO);
    (void)close(pipe_ends[0]);
    (void)signal(SIGABRT, SIG_DFL);
    (void)signal(SIGSEGV, SIG_DFL);
    (void)alarm(30);
    action();
    _exit(0);
  }
  (void)close(pipe_ends[1]);
  End end;
  char text[4096];
  for (ssize_t got = 0; (got = read(pipe_ends[0], text, sizeof text)) > 0;)
    end.said.append(text, std::size_t(got));
  (void)close(pipe_ends[0]);
  int status = 0;
  (void)waitpid(child, &status, 0);
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
  return end;
}

std::string hex(std::uintptr_t number) {
  char text[32];
  (void)std::snprintf(text, sizeof text, "0x%" PRIxPTR, number);
  return text;
}

using Catch::Matchers::Contains;

}  // namespace

// First, because a child begins with a runtime of its own only before this process has one.
TEST_CASE("a kernel that touches freed memory is a page fault, which AMD's runtime reports") {
  for (const bool writes : {false, true}) {
    const End end = endOf([&] {
      const auto work = cistern::test::hipWork();
      if (work == nullptr) _exit(2);
      cistern::Device& device = work->device();
      const cistern::Address freed = device.malloc(4 * kMiB).orThrow();
      device.free(freed).orThrow();
      (void)std::fprintf(stderr, "freed %s\n", hex(freed).c_str());
      writes ? work->fill({}, freed, 4 * kMiB, 1) : work->verify({}, freed, 4 * kMiB, 1);
      (void)device.synchronizeDevice();
    });
    INFO(end.said);
    CHECK(end.signal == SIGABRT);
    REQUIRE_THAT(end.said, Contains("freed 0x"));
    const std::size_t at = end.said.find("freed ") + 6;
    const std::string freed = end.said.substr(at, end.said.find('\n', at) - at);
    // The device's words, then the runtime's.
    CHECK_THAT(end.said, Contains("GPU 0 has mapped no memory at " + freed + ", where queue "));
    CHECK_THAT(end.said, Contains(writes ? " writes: cisternFill" : " reads: cisternVerify"));
    CHECK_THAT(end.said, Contains("Memory access fault by GPU node-1 "));
    CHECK_THAT(end.said, Contains(" on address " + freed + ". Reason: Page not present"));
  }
}

TEST_CASE("freed memory is the host's for a copy by AMD's runtime, and the host faults on it") {
  const End end = endOf([] {
    void *freed = nullptr, *other = nullptr;
    (void)hipMalloc(&freed, 4 * kMiB);
    (void)hipMalloc(&other, 4 * kMiB);
    (void)hipFree(freed);
    (void)hipMemcpyDtoDAsync(other, freed, 4 * kMiB, nullptr);
    (void)hipDeviceSynchronize();
  });
  CHECK(end.signal == SIGSEGV);
  CHECK(end.said.empty());  // no queue of the GPU's has faulted
}

TEST_CASE("the GPU's memory faults for the host, and freed memory that nothing uses does not") {
  CHECK(endOf([] {
          void* memory = nullptr;
          (void)hipMalloc(&memory, kMiB);
          *static_cast<volatile char*>(memory) = 1;
        }).signal == SIGSEGV);
  CHECK(endOf([] {
          void* memory = nullptr;
          if (hipMalloc(&memory, kMiB) != hipSuccess || hipFree(memory) != hipSuccess) _exit(1);
        }).signal == 0);
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
