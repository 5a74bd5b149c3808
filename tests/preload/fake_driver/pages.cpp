// Pages and addresses of the fake driver.
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <string_view>

#include "tests/preload/fake_driver/state.hpp"

using namespace fake;

namespace {

std::mutex pages_mutex;
auto& exportable = *new std::set<std::uint64_t>;    // pages that were made so; under pages_mutex
auto& of_host = *new std::set<std::uint64_t>;       // pages in the host's memory, also under it, as
auto& mapped = *new std::map<CUdeviceptr, size_t>;  // where those lie

// A step of virtual memory that the environment names in FAKE_REFUSES.
bool refuses(std::string_view function) {
  const char* const refused = std::getenv("FAKE_REFUSES");
  return refused != nullptr && function == refused;
}

// The driver knows two kinds, which are not named in older headers. FAKE_REFUSES_HOST refuses the
// first; "both", both.
constexpr int kHost = 2, kHostNuma = 3;
bool refusesHost(int kind) {
  const char* const refused = std::getenv("FAKE_REFUSES_HOST");
  return refused != nullptr && (kind == kHost || std::strcmp(refused, "both") == 0);
}

CUresult createHostPage(CUmemGenericAllocationHandle* out, size_t bytes,
                        const CUmemAllocationProp& wanted) {
  const int kind = int(wanted.location.type);
  fake::count(kind == kHost ? "cuMemCreate on the host" : "cuMemCreate on a NUMA node");
  const bool has_handle = wanted.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
  if (refusesHost(kind) || (kind == kHost && has_handle)) return CUDA_ERROR_INVALID_VALUE;
  const cistern::Result<cistern::Page> page = current().sim->createHostPage(bytes);
  if (!page) return CUresult(codeOf(page));
  const std::lock_guard lock(pages_mutex);
  return of_host.insert(*out = page.value().raw), CUDA_SUCCESS;
}

}  // namespace

bool fake::liesOnHost(CUdeviceptr address) {
  const std::lock_guard lock(pages_mutex);
  const auto above = mapped.upper_bound(address);
  return above != mapped.begin() && address - std::prev(above)->first < std::prev(above)->second;
}

FAKE CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*,
                                            CUmemAllocationGranularity_flags) {
  return *bytes = current().sim->virtualMemory().granularity, CUDA_SUCCESS;
}
FAKE CUresult cuMemAddressReserve(CUdeviceptr* out, size_t bytes, size_t, CUdeviceptr,
                                  unsigned long long) {
  FAKE_BEGIN("cuMemAddressReserve");
  if (refuses("cuMemAddressReserve")) return CUDA_ERROR_UNKNOWN;
  const cistern::Result<cistern::Address> range = current().sim->reserve(bytes);
  if (range) *out = range.value();
  return CUresult(codeOf(range));
}
FAKE CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  FAKE_BEGIN("cuMemAddressFree");
  return CUresult(codeOf(current().sim->freeReservation(address, bytes)));
}
FAKE CUresult cuMemCreate(CUmemGenericAllocationHandle* out, size_t bytes,
                          const CUmemAllocationProp* wanted, unsigned long long) {
  FAKE_BEGIN("cuMemCreate");
  if (refuses("cuMemCreate")) return CUDA_ERROR_UNKNOWN;
  const int kind = int(wanted->location.type);
  if (kind == kHost || kind == kHostNuma) return createHostPage(out, bytes, *wanted);
  const bool exports = wanted->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if (exports && std::getenv("FAKE_REFUSES_DESCRIPTORS") != nullptr)
    return CUDA_ERROR_NOT_PERMITTED;
  const bool rdma = wanted->allocFlags.gpuDirectRDMACapable != 0;
  if (rdma && std::getenv("FAKE_REFUSES_RDMA") != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (rdma) fake::count("cuMemCreate for network cards");
  Device& there = wanted->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? device(wanted->location.id)
                                                                       : current();
  const cistern::Result<cistern::Page> page = there.sim->createPage(bytes);
  if (!page) return CUresult(codeOf(page));
  *out = page.value().raw;
  const std::lock_guard lock(pages_mutex);
  if (exports) exportable.insert(*out);
  return CUDA_SUCCESS;
}
FAKE CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle page,
                                           CUmemAllocationHandleType, unsigned long long) {
  FAKE_BEGIN("cuMemExportToShareableHandle");
  const std::lock_guard lock(pages_mutex);
  if (exportable.count(page) == 0) return CUDA_ERROR_INVALID_VALUE;
  const cistern::Result<int> descriptor = current().sim->exportPage(cistern::Page{page});
  if (descriptor) *static_cast<int*>(out) = descriptor.value();
  return CUresult(codeOf(descriptor));
}
FAKE CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* descriptor,
                                             CUmemAllocationHandleType) {
  FAKE_BEGIN("cuMemImportFromShareableHandle");
  const cistern::Result<cistern::Page> page =
      current().sim->importPage(int(reinterpret_cast<std::intptr_t>(descriptor)));
  if (page) *out = page.value().raw;
  return CUresult(codeOf(page));
}
FAKE CUresult cuMemRelease(CUmemGenericAllocationHandle page) {
  FAKE_BEGIN("cuMemRelease");
  {
    const std::lock_guard lock(pages_mutex);
    exportable.erase(page);
    of_host.erase(page);
  }
  return CUresult(codeOf(current().sim->releasePage(cistern::Page{page})));
}
FAKE CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle page,
                       unsigned long long) {
  FAKE_BEGIN("cuMemMap");
  if (refuses("cuMemMap")) return CUDA_ERROR_UNKNOWN;
  {
    const std::lock_guard lock(pages_mutex);
    if (of_host.count(page) != 0) mapped[address] = bytes;
  }
  return CUresult(codeOf(current().sim->map(address, bytes, cistern::Page{page})));
}
FAKE CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc*,
                             size_t who) {
  FAKE_BEGIN(who > 1 ? "cuMemSetAccess for peers" : "cuMemSetAccess");
  if (refuses("cuMemSetAccess")) return CUDA_ERROR_UNKNOWN;
  return CUresult(codeOf(current().sim->setAccess(address, bytes)));
}
FAKE CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  FAKE_BEGIN("cuMemUnmap");
  if (refuses("cuMemUnmap")) return CUDA_ERROR_UNKNOWN;
  {
    const std::lock_guard lock(pages_mutex);
    mapped.erase(mapped.lower_bound(address), mapped.lower_bound(address + bytes));
  }
  return CUresult(codeOf(current().sim->unmap(address, bytes)));
}
