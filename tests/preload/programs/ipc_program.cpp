// Two processes that share device memory by handles, on the runtime or the driver: see
// gpu_names.hpp. The first gives handles, the other one, a child of fork, opens them. Only under
// `cistern run`: a fake driver shares nothing. COMMAND in the environment: the child becomes this
// program anew, under that `cistern run`; or, where it is empty, by itself.
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/preload/programs/gpu_names.hpp"

namespace {

using Handle = gpu::IpcHandle;

constexpr int kInvalidContext = 201, kInvalidHandle = 400;
constexpr std::size_t kLarge = 3 * kBytes + 100;

/// What the two tell each other.
class Channel {
 public:
  explicit Channel(int end) : end_(end) {}
  template <class T>
  void send(const T& what) {
    EXPECT(::write(end_, &what, sizeof what) == ssize_t(sizeof what));
  }
  template <class T = int>
  T receive() {
    T got{};
    EXPECT(::recv(end_, &got, sizeof got, MSG_WAITALL) == ssize_t(sizeof got));
    return got;
  }
  int end() const { return end_; }

 private:
  int end_;
};

using Side = void (*)(Channel&);

void runSide(Side side, int end) {
  gpu::begin();
  Channel channel(end);
  side(channel);
  EXPECT(gpu::races() == 0);
}

const char* case_name = "";

/// What was forked goes on as a new program, if that is wanted: CHANNEL says that it is that one.
void becomeAnew(int end) {
  const char* const command = std::getenv("COMMAND");
  if (command == nullptr) return;
  EXPECT(setenv("CHANNEL", std::to_string(end).c_str(), 1) == 0);
  char self[4096] = {};
  EXPECT(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  if (*command != '\0')
    (void)execl(command, command, "run", "--quiet", "--", self, case_name, nullptr);
  (void)execl(self, self, case_name, nullptr);
  EXPECT(false);
}

/// The first in this process, the other in a child. Neither has come to CUDA before.
void inTwo(Side gives, Side opens) {
  if (number("CHANNEL") != 0) return runSide(opens, int(number("CHANNEL")));
  int ends[2];
  EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const pid_t child = fork();
  (void)close(ends[child == 0 ? 0 : 1]);
  if (child == 0) {
    becomeAnew(ends[1]);
    runSide(opens, ends[1]);
    std::exit(failures == 0 ? 0 : 1);
  }
  runSide(gives, ends[0]);
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

std::vector<unsigned> pattern(std::size_t bytes, unsigned seed) {
  std::vector<unsigned> words(bytes / sizeof(unsigned));
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = seed + unsigned(i);
  return words;
}
void fill(Memory memory, std::size_t bytes, unsigned seed) {
  EXPECT(gpu::write(memory, pattern(bytes, seed).data(), bytes / 4 * 4) == 0);
}
bool holds(Memory memory, std::size_t bytes, unsigned seed) {
  std::vector<unsigned> words(bytes / sizeof(unsigned));
  return gpu::read(words.data(), memory, bytes / 4 * 4) == 0 && words == pattern(bytes, seed);
}

Memory filled(std::size_t bytes, unsigned seed) {
  Memory const memory = allocated(bytes);
  fill(memory, bytes, seed);
  return memory;
}
Handle handleOf(Memory memory) {
  Handle handle{};
  EXPECT(gpu::getHandle(&handle, memory) == 0);
  return handle;
}
Memory opened(const Handle& handle) {
  Memory memory = nullptr;
  EXPECT(gpu::openHandle(&memory, handle) == 0);
  return memory;
}
int errorOf(const Handle& handle) {
  Memory memory = nullptr;
  return gpu::openHandle(&memory, handle);
}
bool same(const Handle& one, const Handle& other) {
  return std::memcmp(&one, &other, sizeof one) == 0;
}

// The handle is the whole block's, wherever in it the pointer lies.
void readAndWrite() {
  inTwo(
      [](Channel& other) {
        Memory const before = allocated(kLarge);
        Memory const memory = filled(kLarge, 1);
        const Handle handle = handleOf(memory);
        EXPECT(same(handle, handleOf(memory + 1000)));
        EXPECT(!same(handle, handleOf(before)));
        other.send(handle);
        (void)other.receive();
        EXPECT(holds(memory, kLarge, 2));
        EXPECT(gpu::free(memory) == 0);
        EXPECT(gpu::free(before) == 0);
      },
      [](Channel& other) {
        Memory const memory = opened(other.receive<Handle>());
        EXPECT(holds(memory, kLarge, 1));
        CUdeviceptr base = 0;
        std::size_t bytes = 0;
        const auto range =
            driverFunction<decltype(cuMemGetAddressRange_v2)>("cuMemGetAddressRange_v2");
        EXPECT(range(&base, &bytes, CUdeviceptr(memory) + 1000) == CUDA_SUCCESS);
        EXPECT(base == CUdeviceptr(memory) && bytes == kLarge);
        const auto attribute =
            driverFunction<decltype(cuPointerGetAttribute)>("cuPointerGetAttribute");
        EXPECT(attribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, CUdeviceptr(memory) + 1000) ==
               CUDA_SUCCESS);
        EXPECT(bytes == kLarge);
        Handle third{};
        EXPECT(gpu::getHandle(&third, memory) == kInvalidValue);
        fill(memory, kLarge, 2);
        EXPECT(gpu::closeHandle(memory) == 0);
        other.send(0);
      });
}

void twice() {
  inTwo(
      [](Channel& other) {
        Memory const memory = filled(kBytes, 1);
        other.send(handleOf(memory));
        (void)other.receive();
        EXPECT(gpu::free(memory) == 0);
      },
      [](Channel& other) {
        const auto handle = other.receive<Handle>();
        Memory const memory = opened(handle);
        EXPECT(opened(handle) == memory);
        EXPECT(gpu::closeHandle(memory) == 0);
        EXPECT(holds(memory, kBytes, 1));
        EXPECT(gpu::free(memory) == kInvalidValue);
        EXPECT(holds(memory, kBytes, 1));
        EXPECT(gpu::closeHandle(memory + 512) == kInvalidValue);
        EXPECT(gpu::closeHandle(memory) == 0);
        EXPECT(gpu::closeHandle(memory) == kInvalidValue);
        other.send(0);
      });
}

// What is freed too early is read as whatever it is by then; nobody falls over it.
void freedFirst() {
  inTwo(
      [](Channel& other) {
        for (const bool in_order : {false, true}) {
          Memory const memory = filled(kLarge, 1);
          other.send(handleOf(memory));
          (void)other.receive();
          EXPECT((in_order ? gpu::freeAsync(memory, nullptr) : gpu::free(memory)) == 0);
          for (int i = 0; i < 50; ++i) EXPECT(gpu::free(filled(kLarge + i * kBytes / 4, 9)) == 0);
          other.send(0);
          (void)other.receive();
        }
      },
      [](Channel& other) {
        for (int round = 0; round < 2; ++round) {
          const auto handle = other.receive<Handle>();
          Memory const memory = opened(handle);
          EXPECT(holds(memory, kLarge, 1));
          other.send(0);
          (void)other.receive();
          unsigned word = 0;
          EXPECT(gpu::read(&word, memory, sizeof word) == 0);
          EXPECT(opened(handle) == memory);  // it is open here still
          EXPECT(gpu::closeHandle(memory) == 0);
          EXPECT(gpu::closeHandle(memory) == 0);
          EXPECT(errorOf(handle) == kInvalidValue);
          other.send(0);
        }
      });
}

// Another block in the same place has another handle, and is opened beside what is open there.
void inItsPlace() {
  inTwo(
      [](Channel& other) {
        Memory const memory = filled(kLarge, 1);
        const Handle handle = handleOf(memory);
        other.send(handle);
        (void)other.receive();
        EXPECT(gpu::free(memory) == 0);
        Memory const again = filled(kLarge, 2);
        EXPECT(again == memory);
        EXPECT(!same(handle, handleOf(again)));
        other.send(handleOf(again));
        (void)other.receive();
        EXPECT(gpu::free(again) == 0);
      },
      [](Channel& other) {
        Memory const old = opened(other.receive<Handle>());
        other.send(0);
        Memory const memory = opened(other.receive<Handle>());
        EXPECT(holds(memory, kLarge, 2));
        EXPECT(gpu::closeHandle(old) == 0);
        EXPECT(holds(memory, kLarge, 2));
        EXPECT(gpu::closeHandle(memory) == 0);
        EXPECT(gpu::closeHandle(memory) == kInvalidValue);
        other.send(0);
      });
}

void wrongHandles() {
  inTwo(
      [](Channel& other) {
        Memory const memory = filled(kBytes, 1);
        const Handle handle = handleOf(memory);
        EXPECT(errorOf(handle) == kInvalidContext);  // its own
        EXPECT(gpu::free(memory) == 0);
        EXPECT(errorOf(handle) == kInvalidContext);
        other.send(handle);
        (void)other.receive();
      },
      [](Channel& other) {
        const auto freed = other.receive<Handle>();
        EXPECT(errorOf(freed) == kInvalidValue);
        Handle wrong = freed;
        wrong.reserved[60] = 'x';  // behind the end of the name
        EXPECT(errorOf(wrong) == kInvalidValue);
        wrong.reserved[20] ^= 1;  // of no process
        EXPECT(errorOf(wrong) == kInvalidValue);
        wrong.reserved[0] ^= 1;  // the driver's, for all that is known
        EXPECT(errorOf(wrong) == kInvalidHandle);
        EXPECT(errorOf(Handle{}) == kInvalidHandle);
        Handle drivers{};  // one that the driver has made is opened by it
        std::strcpy(drivers.reserved, "a handle of the fake driver's");
        EXPECT(gpu::closeHandle(opened(drivers)) == 0);
        other.send(0);
      });
}

void hundredBlocks() {
  inTwo(
      [](Channel& other) {
        std::vector<Memory> all;
        for (unsigned i = 0; i < 100; ++i) {
          all.push_back(filled(std::size_t(512) << i % 14, i));
          other.send(handleOf(all.back()));
        }
        for (unsigned i = 0; i < 100; ++i) {
          (void)other.receive();
          EXPECT(holds(all[i], std::size_t(512) << i % 14, 1000 + i));
          EXPECT(gpu::free(all[i]) == 0);
        }
      },
      [](Channel& other) {
        std::vector<Memory> all;
        for (unsigned i = 0; i < 100; ++i) all.push_back(opened(other.receive<Handle>()));
        for (unsigned i = 0; i < 100; ++i) {
          const std::size_t bytes = std::size_t(512) << i % 14;
          EXPECT(holds(all[i], bytes, i));
          fill(all[i], bytes, 1000 + i);
          EXPECT(gpu::closeHandle(all[i]) == 0);
          other.send(0);
        }
      });
}

// Threads that give and free, while others ask.
void threads() {
  inTwo(
      [](Channel& other) {
        Memory const kept = filled(kBytes, 1);
        other.send(handleOf(kept));
        std::vector<std::thread> all;
        for (int t = 0; t < 4; ++t) {
          all.emplace_back([] {
            gpu::begin();
            for (int i = 0; i < 200; ++i) {
              Memory const memory = allocated(kBytes << i % 3);
              Handle const handle = handleOf(memory);
              EXPECT(same(handle, handleOf(memory)));
              EXPECT(gpu::free(memory) == 0);
            }
          });
        }
        for (std::thread& thread : all) thread.join();
        (void)other.receive();
        EXPECT(gpu::free(kept) == 0);
      },
      [](Channel& other) {
        const auto handle = other.receive<Handle>();
        for (int i = 0; i < 200; ++i) {
          Memory const memory = opened(handle);
          EXPECT(holds(memory, 512, 1));
          EXPECT(gpu::closeHandle(memory) == 0);
        }
        other.send(0);
      });
}

// What a context has opened, and what it has shared, ends with it.
void reset() {
  inTwo(
      [](Channel& other) {
        Memory const memory = filled(kBytes, 1);
        const Handle handle = handleOf(memory);
        other.send(handle);
        (void)other.receive();
        EXPECT(gpu::reset() == 0);
        gpu::begin();
        Memory const again = filled(kBytes, 2);
        other.send(handle);
        other.send(handleOf(again));
        (void)other.receive();
        EXPECT(gpu::free(again) == 0);
      },
      [](Channel& other) {
        const auto handle = other.receive<Handle>();
        Memory memory = opened(handle);
        EXPECT(gpu::reset() == 0);
        gpu::begin();
        EXPECT(gpu::closeHandle(memory) == kInvalidValue);
        memory = opened(handle);
        EXPECT(holds(memory, kBytes, 1));
        EXPECT(gpu::closeHandle(memory) == 0);
        other.send(0);
        EXPECT(errorOf(other.receive<Handle>()) == kInvalidValue);
        memory = opened(other.receive<Handle>());
        EXPECT(holds(memory, kBytes, 2));
        other.send(0);
      });
}

// Here the child gives, and ends: what is open stays, and nothing more can be opened.
void ended() {
  inTwo(
      [](Channel& other) {
        const auto open = other.receive<Handle>(), closed = other.receive<Handle>();
        Memory const memory = opened(open);
        other.send(0);
        int none = 0;
        EXPECT(::read(other.end(), &none, sizeof none) == 0);  // it has ended
        EXPECT(holds(memory, kLarge, 1));
        fill(memory, kLarge, 2);
        EXPECT(holds(memory, kLarge, 2));
        EXPECT(errorOf(closed) == kInvalidValue);
        EXPECT(gpu::closeHandle(memory) == 0);
      },
      [](Channel& other) {
        other.send(handleOf(filled(kLarge, 1)));
        other.send(handleOf(filled(kLarge, 1)));
        (void)other.receive();
      });
}

// What is shared is refused, and the memory works all the same.
void refused() {
  gpu::begin();
  Memory const memory = filled(kLarge, 1);
  Handle handle{};
  EXPECT(gpu::getHandle(&handle, memory) == int(number("EXPECTED")));
  EXPECT(holds(memory, kLarge, 1));
  EXPECT(gpu::free(memory) == 0);
}

const Case kCases[] = {{"read_and_write", readAndWrite},
                       {"twice", twice},
                       {"freed_first", freedFirst},
                       {"in_its_place", inItsPlace},
                       {"wrong_handles", wrongHandles},
                       {"hundred_blocks", hundredBlocks},
                       {"threads", threads},
                       {"reset", reset},
                       {"ended", ended},
                       {"refused", refused}};

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) case_name = argv[1];
  return runCase(kCases, argc, argv);
}
