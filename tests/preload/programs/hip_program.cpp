// What only HIP has: a program that is linked to its runtime, and also looks for its functions in
// every way there is. SERVED: see gpu_names.hpp.
#include <initializer_list>

#include <dlfcn.h>

#include "tests/preload/programs/gpu_names.hpp"

extern "C" {
hipError_t hipStreamBeginCapture_spt(hipStream_t, hipStreamCaptureMode);
hipError_t hipStreamEndCapture_spt(hipStream_t, hipGraph_t*);
hipError_t hipMemsetAsync_spt(void*, int, size_t, hipStream_t);
hipError_t hipMemsetD2D8Async(void*, size_t, unsigned char, size_t, size_t, hipStream_t);
hipError_t hipExtGetLastError();
}
hipError_t hipExtModuleLaunchKernel(hipFunction_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t,
                                    uint32_t, size_t, hipStream_t, void**, void**, hipEvent_t,
                                    hipEvent_t, uint32_t);

namespace {

bool sharesMemory() { return std::getenv("IPC") != nullptr; }

// ---- How its functions are found ----------------------------------------------------------------

using Malloc = hipError_t(void**, size_t);

// Whether the function allocates, from Cistern where that serves.
bool works(Malloc* function) {
  if (function == nullptr) return false;
  const unsigned long long before = calls("hipMalloc");
  void* memory = nullptr;
  if (function(&memory, kBytes) != hipSuccess) return false;
  return (calls("hipMalloc") != before) != served() && hipFree(memory) == hipSuccess;
}

void names() {
  (void)gpu::free(allocated());  // the runtime is called for prices here, and not later
  EXPECT(works(static_cast<Malloc*>(&hipMalloc)));
  Dl_info where{};
  EXPECT(dladdr(dlsym(RTLD_DEFAULT, "hipFakeRaces"), &where) != 0);
  void* const library = dlopen(where.dli_fname, RTLD_NOW);
  for (void* const handle : {library, RTLD_DEFAULT})
    EXPECT(works(reinterpret_cast<Malloc*>(dlsym(handle, "hipMalloc"))));
  using Find = hipError_t(const char*, void**, int, uint64_t, void*);
  for (const char* const finder : {"hipGetProcAddress", "hipGetProcAddress_spt"}) {
    const auto find = reinterpret_cast<Find*>(dlsym(library, finder));
    void* found = nullptr;
    EXPECT(find("hipMalloc", &found, 601, 0, nullptr) == hipSuccess);
    EXPECT(works(reinterpret_cast<Malloc*>(found)));
    EXPECT(find("hipNoSuchFunction", &found, 601, 0, nullptr) != hipSuccess);
    EXPECT(find(finder, &found, 601, 0, nullptr) == hipSuccess);  // and by what it finds
    EXPECT(reinterpret_cast<Find*>(found)("hipMalloc", &found, 601, 0, nullptr) == hipSuccess);
    EXPECT(works(reinterpret_cast<Malloc*>(found)));
  }
  void* found = nullptr;
  using Enter = hipError_t(const char*, void**, unsigned long long, void*);
  const auto enter = reinterpret_cast<Enter*>(dlsym(library, "hipGetDriverEntryPoint"));
  EXPECT(enter("hipMalloc", &found, 0, nullptr) == hipSuccess);
  EXPECT(works(reinterpret_cast<Malloc*>(found)));
  EXPECT(dlsym(library, "hipNoSuchFunction") == nullptr && dlerror() != nullptr);
}

// ---- Work, by each function that submits some ---------------------------------------------------

template <class Submit>
void busy(gpu::Stream next, Submit submit) {
  for (int i = 0; i < 20; ++i) {
    const Memory memory = allocated();
    EXPECT(submit(memory) == hipSuccess);
    EXPECT(gpu::free(memory) == 0);
    const Memory again = allocated();
    launch(next, again, kBytes, 1000);
    EXPECT(gpu::free(again) == 0);
  }
  EXPECT(gpu::races() == 0);
}

void work() {
  const gpu::Stream user = makeStream(kNonBlocking), next = makeStream(kNonBlocking);
  EXPECT(gpu::free(allocated()) == 0);
  std::size_t bytes = kBytes;
  int writes = 1;
  unsigned long long time = kMillisecond;
  Memory address = nullptr;
  void* parameters[] = {&address, &bytes, &writes, &time};
  const auto with = [&](Memory memory) {
    address = memory;
    return parameters;
  };
  busy(next,
       [&](Memory m) { return hipLaunchKernel(nullptr, dim3(1), dim3(1), with(m), 0, user); });
  busy(next, [&](Memory m) {
    return hipLaunchKernel_spt(nullptr, dim3(1), dim3(1), with(m), 0, nullptr);
  });
  busy(next, [&](Memory m) {
    return hipExtModuleLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, user, with(m), nullptr, nullptr,
                                    nullptr, 0);
  });
  busy(next, [&](Memory m) { return hipMemsetAsync(m, 0, kBytes, user); });
  busy(next, [&](Memory m) { return hipMemsetAsync_spt(m, 0, kBytes, nullptr); });
  busy(next, [&](Memory m) { return hipMemsetD2D8Async(m, 1024, 0, 1024, 1024, user); });
  busy(next,
       [&](Memory m) { return hipMemcpy(m, m + kBytes / 2, kBytes / 2, hipMemcpyDeviceToDevice); });
  busy(next, [&](Memory m) {
    return hipMemcpy_spt(m, m + kBytes / 2, kBytes / 2, hipMemcpyDeviceToDevice);
  });
}

// Of each kind; the second one has the first one's memory.
void streams() {
  gpu::Stream made[4] = {};
  const uint32_t mask = 1;
  EXPECT(hipStreamCreate(&made[0]) == hipSuccess);
  EXPECT(hipStreamCreateWithFlags(&made[1], hipStreamNonBlocking) == hipSuccess);
  EXPECT(hipStreamCreateWithPriority(&made[2], hipStreamNonBlocking, -1) == hipSuccess);
  EXPECT(hipExtStreamCreateWithCUMask(&made[3], 1, &mask) == hipSuccess);
  for (int i = 0; i < 40; ++i) {
    const Memory memory = allocated();
    launch(made[i % 4], memory);
    EXPECT(gpu::free(memory) == 0);
  }
  EXPECT(gpu::races() == 0);
}

// Work on a device that the program has told nothing of before may use what another has, by a copy
// or as a peer: no order on one device is for both, and memory is used again when it is complete.
void otherDevice() {
  const gpu::Stream user = makeStream(kNonBlocking);
  const auto isReusedAtOnce = [&] {
    const Memory memory = allocated();
    launch(user, memory);
    EXPECT(gpu::free(memory) == 0);
    const Memory again = allocated();
    const bool reused = again == memory;
    EXPECT(gpu::free(again) == 0);
    return reused;
  };
  if (served()) EXPECT(isReusedAtOnce());
  EXPECT(hipSetDevice(1) == hipSuccess);
  EXPECT(hipMemcpy(nullptr, nullptr, 0, hipMemcpyDeviceToDevice) == hipSuccess);
  EXPECT(hipSetDevice(0) == hipSuccess);
  if (served()) EXPECT(!isReusedAtOnce());
  EXPECT(gpu::races() == 0);
}

// ---- What is kept of failures -------------------------------------------------------------------

// The last failure is that of a call of the program's: none of ours is, and those that were served
// are.
void failures() {
  const gpu::Stream user = makeStream(kNonBlocking), next = makeStream(0);
  for (int i = 0; i < 50; ++i) {
    Memory memory = nullptr;
    EXPECT(gpu::mallocAsync(&memory, kBytes, user) == 0);
    launch(user, memory);
    EXPECT((i % 2 == 0 ? gpu::free(memory) : gpu::freeAsync(memory, user)) == 0);
    const Memory again = allocated(kBytes << i % 4);
    launch(next, again);
    EXPECT(gpu::freeAsync(again, next) == 0);
    EXPECT(hipGetLastError() == hipSuccess);
  }
  void* memory = nullptr;
  EXPECT(hipMalloc(&memory, std::size_t(1) << 50) == hipErrorOutOfMemory);
  EXPECT(hipPeekAtLastError() == hipErrorOutOfMemory);
  EXPECT(hipGetLastError() == hipErrorOutOfMemory);
  EXPECT(hipGetLastError() == hipSuccess && hipPeekAtLastError() == hipSuccess);
  const Memory twice = allocated();
  EXPECT(gpu::free(twice) == 0);
  EXPECT(hipFree(twice) == hipErrorInvalidValue);
  EXPECT(hipExtGetLastError() == hipErrorInvalidValue);
  EXPECT(hipGetLastError() == hipSuccess);
  EXPECT(hipSetDevice(77) == hipErrorInvalidDevice);
  EXPECT(hipGetLastError() == hipErrorInvalidDevice);
  // The runtime has no room at first, and then it has: that has not failed.
  EXPECT(gpu::free(allocated(std::size_t(60) << 30)) == 0);
  EXPECT(hipMallocManaged(&memory, std::size_t(60) << 30, 1) == hipSuccess);
  EXPECT(hipGetLastError() == hipSuccess);
}

// ---- Pointers -----------------------------------------------------------------------------------

void pointers() {
  const std::size_t size = kBytes + 100;
  const Memory first = allocated(size), memory = allocated(size);
  void* base = nullptr;
  std::size_t bytes = 0;
  EXPECT(hipMemGetAddressRange(&base, &bytes, memory + 1000) == hipSuccess);
  EXPECT(base == memory && bytes == size);
  EXPECT(hipMemPtrGetInfo(memory, &bytes) == hipSuccess && bytes == size);
  hipPointerAttribute_t attributes{};
  attributes.device = -1;
  EXPECT(hipPointerGetAttributes(&attributes, memory + 1000) == hipSuccess);
  EXPECT(attributes.device == 0 && attributes.devicePointer == memory + 1000);
  EXPECT(hipPointerGetAttribute(&base, HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory + 1000) ==
         hipSuccess);
  EXPECT(base == memory);
  int device = -1;
  hipPointer_attribute which[] = {HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                  HIP_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* out[] = {&device, &bytes};
  bytes = 0;
  EXPECT(hipDrvPointerGetAttributes(2, which, out, memory) == hipSuccess);
  EXPECT(device == 0 && bytes == size);
  hipIpcMemHandle_t handle{};
  EXPECT(hipIpcGetMemHandle(&handle, memory) ==
         (served() && !sharesMemory() ? hipErrorNotSupported : hipSuccess));
  // To free what lies in the middle of a block takes nothing from anybody.
  if (served() && !sharesMemory()) EXPECT(hipFree(memory + 512) == hipErrorInvalidValue);
  launch(nullptr, first, size);
  launch(nullptr, memory, size);
  EXPECT(gpu::free(memory) == 0 && gpu::free(first) == 0);
  EXPECT(gpu::races() == 0);
}

// Memory of other kinds is the runtime's, and goes back to it.
void kinds() {
  void* memory = nullptr;
  std::size_t pitch = 0;
  EXPECT(hipExtMallocWithFlags(&memory, kBytes, hipDeviceMallocDefault) == hipSuccess);
  if (served()) EXPECT(calls("hipExtMallocWithFlags") == 0);
  EXPECT(hipFree(memory) == hipSuccess);
  EXPECT(hipExtMallocWithFlags(&memory, kBytes, 1) == hipSuccess);
  EXPECT(calls("hipExtMallocWithFlags") >= 1);
  EXPECT(hipFree(memory) == hipSuccess);
  EXPECT(hipMallocPitch(&memory, &pitch, 1000, 10) == hipSuccess && pitch >= 1000);
  EXPECT(hipFree(memory) == hipSuccess);
  hipArray_t array = nullptr;
  const hipChannelFormatDesc format{};
  EXPECT(hipMallocArray(&array, &format, 1000, 1, 0) == hipSuccess);
  // Of a pool of its own; and of the device's, which is Cistern.
  hipMemPool_t pool = nullptr;
  EXPECT(hipDeviceGetDefaultMemPool(&pool, 0) == hipSuccess);
  const unsigned long long before = calls("hipMallocFromPoolAsync");
  EXPECT(hipMallocFromPoolAsync(&memory, kBytes, pool, nullptr) == hipSuccess);
  if (served()) EXPECT(calls("hipMallocFromPoolAsync") == before);
  EXPECT(hipFreeAsync(memory, nullptr) == hipSuccess);
  const hipMemPool_t own = gpu::makePool();
  EXPECT(hipMallocFromPoolAsync(&memory, kBytes, own, nullptr) == hipSuccess);
  if (served()) EXPECT(calls("hipMallocFromPoolAsync") == before + 1);
  EXPECT(hipFreeAsync(memory, nullptr) == hipSuccess);
  EXPECT(hipDeviceSetMemPool(0, own) == hipSuccess);
  const unsigned long long asked = calls("hipMallocAsync");
  EXPECT(hipMallocAsync(&memory, kBytes, nullptr) == hipSuccess);
  EXPECT(calls("hipMallocAsync") == asked + 1);
  EXPECT(hipFreeAsync(memory, nullptr) == hipSuccess);
  EXPECT(hipMalloc(&memory, 0) == hipSuccess && memory == nullptr);
}

// The thread's own stream, by the spelling for it.
void ownCapture() {
  const Memory memory = allocated();
  hipGraph_t graph = nullptr;
  EXPECT(gpu::exchangeMode(kRelaxed) == 0);
  EXPECT(hipStreamBeginCapture_spt(nullptr, hipStreamCaptureModeRelaxed) == hipSuccess);
  launch(kOwn, memory);
  const Memory meanwhile = allocated(4096);
  EXPECT(gpu::free(meanwhile) == 0);
  EXPECT(hipStreamEndCapture_spt(nullptr, &graph) == hipSuccess);
  EXPECT(gpu::launchGraph(graph, kOwn) == 0);
  EXPECT(gpu::free(memory) == 0);
  launch(makeStream(kNonBlocking), allocated());
  EXPECT(gpu::races() == 0);
}

const Case kCases[] = {{"names", names},
                       {"work", work},
                       {"streams", streams},
                       {"failures", failures},
                       {"pointers", pointers},
                       {"kinds", kinds},
                       {"own_capture", ownCapture},
                       {"other_device", otherDevice}};

}  // namespace

int main(int argc, char** argv) { return runCase(kCases, argc, argv); }
