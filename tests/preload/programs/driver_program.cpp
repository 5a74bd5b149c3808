// A program on the driver itself, linked to it, which also looks for its functions in every way
// there is. SERVED: see runtime_program.cpp.
#include <initializer_list>

#include <dlfcn.h>

#include "tests/preload/fake_driver/fake_driver.hpp"
#include "tests/preload/programs/expect.hpp"

extern "C" CUresult cuCtxCreate_v2(CUcontext*, unsigned, CUdevice);

namespace {

constexpr std::size_t kBytes = 1 << 20;
using Alloc = CUresult(CUdeviceptr*, size_t);
using AllocAsync = CUresult(CUdeviceptr*, size_t, CUstream);

bool served() { return std::getenv("SERVED") != nullptr; }

void begin() {
  CUcontext context = nullptr;
  EXPECT(cuInit(0) == CUDA_SUCCESS);
  EXPECT(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  EXPECT(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  CUdeviceptr memory = 0;  // the driver is called for prices here, and not later
  EXPECT(cuMemAlloc(&memory, kBytes) == CUDA_SUCCESS);
  EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
}

// Whether the function allocates, and its memory can be freed; from Cistern where that serves.
bool works(Alloc* function, const char* counted) {
  if (function == nullptr) return false;
  const unsigned long long before = cuFakeCalls(counted);
  CUdeviceptr memory = 0;
  if (function(&memory, kBytes) != CUDA_SUCCESS) return false;
  const bool drivers = cuFakeCalls(counted) != before;
  return drivers != served() && cuMemFree(memory) == CUDA_SUCCESS;
}
bool works(AllocAsync* function, const char* counted) {
  if (function == nullptr) return false;
  const unsigned long long before = cuFakeCalls(counted);
  CUdeviceptr memory = 0;
  if (function(&memory, kBytes, nullptr) != CUDA_SUCCESS) return false;
  const bool drivers = cuFakeCalls(counted) != before;
  return drivers != served() && cuMemFreeAsync(memory, nullptr) == CUDA_SUCCESS;
}

template <class Function>
Function* asked(const char* name, int version, cuuint64_t flags = 0) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  if (cuGetProcAddress(name, &found, version, flags, &status) != CUDA_SUCCESS) return nullptr;
  return reinterpret_cast<Function*>(found);
}

void names() {
  begin();
  EXPECT(works(&cuMemAlloc, "cuMemAlloc"));
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  for (void* const handle : {library, RTLD_DEFAULT}) {
    EXPECT(works(reinterpret_cast<Alloc*>(dlsym(handle, "cuMemAlloc_v2")), "cuMemAlloc"));
    EXPECT(
        works(reinterpret_cast<AllocAsync*>(dlsym(handle, "cuMemAllocAsync")), "cuMemAllocAsync"));
    EXPECT(works(reinterpret_cast<AllocAsync*>(dlsym(handle, "cuMemAllocAsync_ptsz")),
                 "cuMemAllocAsync_ptsz"));
  }
  EXPECT(dlsym(library, "cuNoSuchFunction") == nullptr && dlerror() != nullptr);
  EXPECT(dlsym(RTLD_DEFAULT, "strlen") == reinterpret_cast<void*>(&strlen));
}

void versions() {
  begin();
  for (const int version : {3020, 11000, 12000, 13000})
    EXPECT(works(asked<Alloc>("cuMemAlloc", version), "cuMemAlloc"));
  EXPECT(works(asked<AllocAsync>("cuMemAllocAsync", 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM),
               "cuMemAllocAsync"));
  EXPECT(works(
      asked<AllocAsync>("cuMemAllocAsync", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM),
      "cuMemAllocAsync_ptsz"));
  // The look-up itself, in both versions, by each other.
  using Old = CUresult(const char*, void**, int, cuuint64_t);
  const auto newer = asked<decltype(cuGetProcAddress)>("cuGetProcAddress", 12000);
  const auto old = asked<Old>("cuGetProcAddress", 11030);
  void* found = nullptr;
  EXPECT(newer("cuMemAlloc", &found, 12000, 0, nullptr) == CUDA_SUCCESS);
  EXPECT(works(reinterpret_cast<Alloc*>(found), "cuMemAlloc"));
  EXPECT(old("cuMemAlloc", &found, 12000, 0) == CUDA_SUCCESS);
  EXPECT(works(reinterpret_cast<Alloc*>(found), "cuMemAlloc"));
  // A version that nobody has a hook for is the driver's own, whoever is asked.
  const auto first = reinterpret_cast<CUresult (*)(unsigned*, unsigned)>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc"));
  EXPECT(first(nullptr, 0) == CUDA_ERROR_NOT_SUPPORTED);
  EXPECT(cuFakeCalls("cuMemAlloc_v1") == 1);
  EXPECT(asked<Alloc>("cuNoSuchFunction", 12000) == nullptr);
}

// A library that is to find its own libraries first finds the hooks all the same.
void deepBind() {
  begin();
  void* const library = dlopen("libdeep.so", RTLD_NOW | RTLD_DEEPBIND);
  if (!EXPECT(library != nullptr)) return;
  EXPECT(works(reinterpret_cast<Alloc*>(dlsym(library, "allocateDeep")), "cuMemAlloc"));
}

void pointers() {
  begin();
  CUdeviceptr memory = 0;
  EXPECT(cuMemAlloc(&memory, kBytes + 100) == CUDA_SUCCESS);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  EXPECT(cuMemGetAddressRange(&base, &bytes, memory + 1000) == CUDA_SUCCESS);
  EXPECT(base == memory && bytes == kBytes + 100);
  CUcontext context = nullptr, current = nullptr;
  EXPECT(cuCtxGetCurrent(&current) == CUDA_SUCCESS);
  EXPECT(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, memory) == CUDA_SUCCESS);
  if (served() && std::getenv("IPC") == nullptr) EXPECT(context == current);
  unsigned type = 0;
  EXPECT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory) == CUDA_SUCCESS);
  EXPECT(type == CU_MEMORYTYPE_DEVICE);
  CUmemGenericAllocationHandle page = 0;  // as of any cudaMalloc's memory
  EXPECT(cuMemRetainAllocationHandle(&page, reinterpret_cast<void*>(memory + 1000)) ==
         CUDA_ERROR_INVALID_VALUE);
  CUmemAllocationProp wanted{};
  EXPECT(cuMemAddressReserve(&base, 2 << 20, 0, 0, 0) == CUDA_SUCCESS);
  EXPECT(cuMemCreate(&page, 2 << 20, &wanted, 0) == CUDA_SUCCESS);
  EXPECT(cuMemMap(base, 2 << 20, 0, page, 0) == CUDA_SUCCESS);
  EXPECT(cuMemRetainAllocationHandle(&page, reinterpret_cast<void*>(base)) == CUDA_SUCCESS);
  int capable = 7;
  EXPECT(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, memory) ==
         CUDA_SUCCESS);
  EXPECT(capable == 1);
  EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
}

// Handles are made and opened by Cistern, however a program has found the functions: its own one
// is refused with a code that the fake driver has not for it.
void ipcNames() {
  begin();
  CUdeviceptr memory = 0;
  CUipcMemHandle handle{};
  EXPECT(cuMemAlloc(&memory, kBytes) == CUDA_SUCCESS);
  using Get = decltype(cuIpcGetMemHandle);
  using Open = decltype(cuIpcOpenMemHandle);
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  const auto get = reinterpret_cast<Get*>(dlsym(library, "cuIpcGetMemHandle"));
  for (Get* const function : {&cuIpcGetMemHandle, get, asked<Get>("cuIpcGetMemHandle", 4010)})
    EXPECT(function(&handle, memory) == CUDA_SUCCESS);
  EXPECT(cuFakeCalls("cuIpcGetMemHandle") == (served() ? 0 : 3));
  const CUresult own = served() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
  for (const char* const name : {"cuIpcOpenMemHandle_v2", "cuIpcOpenMemHandle"}) {
    for (void* const where : {library, RTLD_DEFAULT})
      EXPECT(reinterpret_cast<Open*>(dlsym(where, name))(&memory, handle, 1) == own);
  }
  for (const int version : {4010, 11000, 13000})
    EXPECT(asked<Open>("cuIpcOpenMemHandle", version)(&memory, handle, 1) == own);
  EXPECT(cuIpcOpenMemHandle(&memory, handle, 1) == own);
  EXPECT(cuFakeCalls("cuIpcOpenMemHandle_v1") == (served() ? 0 : 2));
}

// Contexts of the program's own: what one holds goes with it.
void ownContexts() {
  begin();
  std::size_t before = 0, total = 0, after = 0;
  EXPECT(cuMemGetInfo(&before, &total) == CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) {
    CUcontext context = nullptr;
    EXPECT(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
    CUdeviceptr memory = 0;
    EXPECT(cuMemAlloc(&memory, 64 << 20) == CUDA_SUCCESS);
    EXPECT(cuFakeLaunch(nullptr, "work", memory, kBytes, 1, 1000) == CUDA_SUCCESS);
    if (i % 2 == 0) EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
    EXPECT(cuCtxDestroy(context) == CUDA_SUCCESS);
  }
  CUcontext context = nullptr;
  EXPECT(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  EXPECT(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  EXPECT(cuMemGetInfo(&after, &total) == CUDA_SUCCESS);
  if (served()) EXPECT(after == before);
  EXPECT(cuFakeRaces() == 0);
}

// Contexts of one device share its memory: what one of them keeps is free for the others, for what
// is served and for what is not.
void contextsOfOneDevice() {
  begin();
  const std::size_t most = std::size_t(60) << 30;  // of 80 GiB
  CUcontext contexts[2] = {};
  for (CUcontext& context : contexts) EXPECT(cuCtxCreate_v2(&context, 0, 0) == CUDA_SUCCESS);
  for (int i = 0; i < 6; ++i) {
    EXPECT(cuCtxSetCurrent(contexts[i % 2]) == CUDA_SUCCESS);
    std::size_t free_bytes = 0, total = 0;
    EXPECT(cuMemGetInfo(&free_bytes, &total) == CUDA_SUCCESS);
    EXPECT(free_bytes == total);
    CUdeviceptr memory = 0;
    if (i < 2) {
      EXPECT(cuMemAlloc(&memory, most) == CUDA_SUCCESS);
      EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
    } else if (i < 4) {
      EXPECT(cuMemAllocAsync(&memory, most, nullptr) == CUDA_SUCCESS);
      EXPECT(cuMemFreeAsync(memory, nullptr) == CUDA_SUCCESS);
    } else {
      EXPECT(cuMemAllocManaged(&memory, most, 1) == CUDA_SUCCESS);
      EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
    }
  }
  EXPECT(cuCtxDestroy(contexts[0]) == CUDA_SUCCESS);
  EXPECT(cuFakeRaces() == 0);
}

// Pages may be another device's than the current context's, which has room to make for them.
void pagesOfAnotherDevice() {
  begin();
  CUcontext other = nullptr;
  EXPECT(cuDevicePrimaryCtxRetain(&other, 1) == CUDA_SUCCESS);
  EXPECT(cuCtxPushCurrent(other) == CUDA_SUCCESS);
  CUdeviceptr memory = 0;
  const std::size_t most = std::size_t(60) << 30;
  EXPECT(cuMemAlloc(&memory, most) == CUDA_SUCCESS);
  EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
  EXPECT(cuCtxPopCurrent(&other) == CUDA_SUCCESS);
  CUmemAllocationProp wanted{};
  wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  CUmemGenericAllocationHandle page = 0;
  EXPECT(cuMemCreate(&page, most, &wanted, 0) == CUDA_SUCCESS);
}

// The last hold on a primary context ends it, and its memory with it; so does a reset. Both have an
// older name.
void lastRelease() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  for (const char* const name : {"cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxReset_v2",
                                 "cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxReset"}) {
    begin();
    CUdeviceptr memory = 0;
    EXPECT(cuMemAlloc(&memory, 64 << 20) == CUDA_SUCCESS);
    const auto end = reinterpret_cast<CUresult (*)(CUdevice)>(dlsym(library, name));
    EXPECT(end(0) == CUDA_SUCCESS);
    CUcontext context = nullptr;
    EXPECT(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    EXPECT(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    std::size_t free_bytes = 0, total = 0;
    EXPECT(cuMemGetInfo(&free_bytes, &total) == CUDA_SUCCESS);
    EXPECT(free_bytes == total);
    EXPECT(cuMemFree(memory) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  }
}

// A peer may use what was there before it was allowed to, and what comes after.
void peers() {
  begin();
  CUdeviceptr memory = 0;
  EXPECT(cuMemAlloc(&memory, 64 << 20) == CUDA_SUCCESS);
  CUcontext owner = nullptr, user = nullptr;
  EXPECT(cuCtxGetCurrent(&owner) == CUDA_SUCCESS);
  EXPECT(cuDevicePrimaryCtxRetain(&user, 1) == CUDA_SUCCESS);
  EXPECT(cuCtxSetCurrent(user) == CUDA_SUCCESS);
  const unsigned long long before = cuFakeCalls("cuMemSetAccess");
  EXPECT(cuCtxEnablePeerAccess(owner, 0) == CUDA_SUCCESS);
  if (served()) EXPECT(cuFakeCalls("cuMemSetAccess") > before);
  EXPECT(cuCtxSetCurrent(owner) == CUDA_SUCCESS);
  EXPECT(cuMemAlloc(&memory, 256 << 20) == CUDA_SUCCESS);
  if (served()) EXPECT(cuFakeCalls("cuMemSetAccess for peers") > 0);
}

// Stream-ordered memory is of the stream's device, whichever context is current. The driver knows
// of both; what another context's stream frees is waited for.
void streamOfAnotherDevice() {
  begin();
  CUcontext here = nullptr, there = nullptr;
  CUstream own = nullptr, other = nullptr;
  EXPECT(cuCtxGetCurrent(&here) == CUDA_SUCCESS);
  EXPECT(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  EXPECT(cuDevicePrimaryCtxRetain(&there, 1) == CUDA_SUCCESS);
  EXPECT(cuCtxSetCurrent(there) == CUDA_SUCCESS);
  EXPECT(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  EXPECT(cuCtxSetCurrent(here) == CUDA_SUCCESS);
  const auto asked = [] { return cuFakeCalls("cuMemAllocAsync"); };
  const unsigned long long before = asked();
  CUdeviceptr memory = 0;
  EXPECT(cuMemAllocAsync(&memory, kBytes, own) == CUDA_SUCCESS);
  EXPECT(asked() == before + !served());
  EXPECT(cuMemFreeAsync(memory, own) == CUDA_SUCCESS);
  EXPECT(cuMemAllocAsync(&memory, kBytes, other) == CUDA_SUCCESS);
  EXPECT(asked() == before + 1 + !served());
  EXPECT(cuMemFreeAsync(memory, other) == CUDA_SUCCESS);

  if (!served()) return;
  EXPECT(cuMemAllocAsync(&memory, kBytes, own) == CUDA_SUCCESS);
  EXPECT(cuCtxSetCurrent(there) == CUDA_SUCCESS);
  const unsigned long long waited = cuFakeCalls("cuStreamSynchronize");
  EXPECT(cuMemFreeAsync(memory, other) == CUDA_SUCCESS);
  EXPECT(cuFakeCalls("cuStreamSynchronize") == waited + 1);
}

// What is submitted by a function that nobody has documented counts as work on every stream; where
// the table cannot be read, every cudaFree is followed by a barrier at once.
void privateTables() {
  begin();
  CUstream one = nullptr, other = nullptr;
  EXPECT(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  EXPECT(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  using Launch = CUresult(CUstream, CUdeviceptr, size_t);
  for (const int which : {1, 2}) {
    CUuuid id{};
    id.bytes[0] = char(which);
    const void* table = nullptr;
    EXPECT(cuGetExportTable(&table, &id) == CUDA_SUCCESS);
    const auto launchHidden = reinterpret_cast<Launch*>(static_cast<void* const*>(table)[1]);
    for (int i = 0; i < 20; ++i) {
      for (const CUstream stream : {one, other}) {
        CUdeviceptr memory = 0;
        EXPECT(cuMemAlloc(&memory, kBytes) == CUDA_SUCCESS);
        if (i % 2 == 0) {
          EXPECT(launchHidden(stream, memory, kBytes) == CUDA_SUCCESS);
        } else {
          EXPECT(cuMemsetD8Async(memory, 0, kBytes, stream) == CUDA_SUCCESS);
        }
        EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
      }
    }
    for (int i = 0; i < 20; ++i) {  // by streams that were not there when the memory was freed
      CUstream stream = nullptr;
      CUdeviceptr memory = 0;
      EXPECT(cuMemAlloc(&memory, kBytes) == CUDA_SUCCESS);
      EXPECT(launchHidden(i % 2 == 0 ? one : other, memory, kBytes) == CUDA_SUCCESS);
      EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
      EXPECT(cuMemAlloc(&memory, kBytes) == CUDA_SUCCESS);
      EXPECT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
      EXPECT(launchHidden(stream, memory, kBytes) == CUDA_SUCCESS);
      EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
    }
    EXPECT(cuFakeRaces() == 0);
  }
  EXPECT(cuFakeCalls("a private table's launch") == 120);
}

// Whether pages are open to network cards, as the driver's own memory is.
void networkCards() {
  begin();
  const bool can = std::getenv("FAKE_RDMA") && !std::getenv("FAKE_REFUSES_RDMA");
  EXPECT((cuFakeCalls("cuMemCreate for network cards") > 0) == can);
  EXPECT(cuFakeCalls("cuMemCreate") > 0);
}

const Case kCases[] = {{"names", names},
                       {"network_cards", networkCards},
                       {"versions", versions},
                       {"deep_bind", deepBind},
                       {"pointers", pointers},
                       {"ipc_names", ipcNames},
                       {"own_contexts", ownContexts},
                       {"contexts_of_one_device", contextsOfOneDevice},
                       {"pages_of_another_device", pagesOfAnotherDevice},
                       {"stream_of_another_device", streamOfAnotherDevice},
                       {"last_release", lastRelease},
                       {"peers", peers},
                       {"private_tables", privateTables}};

}  // namespace

int main(int argc, char** argv) { return runCase(kCases, argc, argv); }
