// libdrm's calls on a render node. AMD's runtime asks it for the product's name, imports pages as
// dma-bufs, and maps them at addresses.
#include <cerrno>
#include <cstring>
#include <mutex>

#include <fcntl.h>
#include <unistd.h>

#include "tests/hip/device/dma_buf.hpp"
#include "tests/hip/device/process.hpp"
#include "tests/hip/device/settings.hpp"

#define PLAYED extern "C" [[gnu::visibility("default")]]

namespace {

using played::Pages;
using played::Process;

struct DrmDevice {
  int gpu = 0;
  int descriptor = -1;
};

/// Pages that a GPU's address space has imported.
struct DrmBuffer {
  DrmDevice* device = nullptr;
  std::shared_ptr<Pages> pages;
};

struct ImportResult {
  DrmBuffer* buffer;
  std::uint64_t bytes;
};

/// The beginning of libdrm's description of a GPU.
struct GpuInfo {
  std::uint32_t asic, revision, external_revision, family;
  std::uint64_t others[7];
  std::uint32_t counter_kilohertz;
};

// The numbers are those of the kernel's interface.
constexpr std::uint32_t kNinthGeneration = 141;
constexpr int kByDmaBuf = 2, kByNumber = 1;
constexpr std::uint32_t kMap = 1, kUnmap = 2;
constexpr unsigned long kOffsetToMap = 1;  // DRM_AMDGPU_GEM_MMAP

std::map<std::uint32_t, DrmBuffer*> numbered;
std::uint32_t last_number = 0;

int refused(const char* call) {
  PLAYED_TRACE("the render node refuses %s", call);
  return -EINVAL;
}

/// The process's state, locked.
struct Locked {
  Locked() : process(played::process()) {
    if (process != nullptr) process->mutex.lock();
  }
  ~Locked() {
    if (process != nullptr) process->mutex.unlock();
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  Process* process;
};

}  // namespace

PLAYED int amdgpu_device_initialize(int descriptor, unsigned* major, unsigned* minor,
                                    void** device) {
  *major = 3;
  *minor = 49;
  *device =
      new DrmDevice{played::gpuOfRenderNode(descriptor), fcntl(descriptor, F_DUPFD_CLOEXEC, 0)};
  return 0;
}
PLAYED int amdgpu_device_deinitialize(void* device) {
  auto* const ended = static_cast<DrmDevice*>(device);
  (void)close(ended->descriptor);
  delete ended;
  return 0;
}
PLAYED int amdgpu_device_get_fd(void* device) {
  return static_cast<DrmDevice*>(device)->descriptor;
}
PLAYED const char* amdgpu_get_marketing_name(void*) { return "Played AMD GPU"; }

PLAYED int amdgpu_query_gpu_info(void*, GpuInfo* info) {
  *info = {};
  info->family = kNinthGeneration;
  info->counter_kilohertz = 100'000;
  return 0;
}

PLAYED int amdgpu_bo_import(void* device, int kind, std::uint32_t descriptor,
                            ImportResult* result) {
  const Locked locked;
  if (locked.process == nullptr || kind != kByDmaBuf) return refused("an import");
  std::shared_ptr<Pages> pages = played::importPages(locked.process->memory, int(descriptor));
  if (pages == nullptr) return refused("an import");
  const std::uint64_t bytes = pages->bytes();
  *result = {new DrmBuffer{static_cast<DrmDevice*>(device), std::move(pages)}, bytes};
  return 0;
}
PLAYED int amdgpu_bo_free(DrmBuffer* buffer) {
  const Locked locked;
  std::erase_if(numbered, [&](const auto& one) { return one.second == buffer; });
  delete buffer;
  return 0;
}
PLAYED int amdgpu_bo_export(DrmBuffer* buffer, int kind, std::uint32_t* number) {
  const Locked locked;
  if (kind != kByNumber) return refused("a number");
  *number = ++last_number;
  numbered[*number] = buffer;
  return 0;
}

PLAYED int amdgpu_bo_va_op(DrmBuffer* buffer, std::uint64_t offset, std::uint64_t bytes,
                           std::uint64_t address, std::uint64_t, std::uint32_t operation) {
  const Locked locked;
  if (locked.process == nullptr) return refused("a mapping");
  played::Memory& memory = locked.process->memory;
  bool done = false;
  if (operation == kMap)
    done = memory.map(buffer->pages, offset, bytes, address, buffer->device->gpu);
  if (operation == kUnmap) done = memory.unmap(bytes, address, buffer->device->gpu);
  return done ? 0 : refused(operation == kMap ? "a mapping" : "an unmapping");
}

PLAYED int drmCommandWriteRead(int, unsigned long command, void* data, unsigned long) {
  const Locked locked;
  std::uint32_t number = 0;
  std::memcpy(&number, data, sizeof(number));
  const auto found = numbered.find(number);
  if (command != kOffsetToMap || found == numbered.end()) return refused("an offset");
  const std::uint64_t offset = found->second->pages->offset();
  std::memcpy(data, &offset, sizeof(offset));
  return 0;
}
