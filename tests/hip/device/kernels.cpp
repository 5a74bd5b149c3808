// The runtime asks the loader for the address of each kernel's descriptor, before it launches the
// kernel. That call is seen here, and the loader is asked for the name too.
#include "tests/hip/device/kernels.hpp"

#include <map>
#include <mutex>

#include <dlfcn.h>
#include <hsa/amd_hsa_kernel_code.h>
#include <hsa/hsa.h>

namespace played {
namespace {

struct Tables {
  std::mutex mutex;
  std::map<std::uint64_t, std::string> names;  ///< by the descriptor's address
  std::map<std::string, StandIn> stand_ins;
};

// Never destroyed, because the engine's thread goes on until the process ends.
Tables& tables() {
  static Tables* const all = new Tables;
  return *all;
}

using SymbolInfo = hsa_status_t(hsa_executable_symbol_t, hsa_executable_symbol_info_t, void*);

// Not by RTLD_NEXT: a program may have loaded the runtime for itself alone.
SymbolInfo* loadersFunction() {
  void* const loader = dlopen("libhsa-runtime64.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return loader == nullptr
             ? nullptr
             : reinterpret_cast<SymbolInfo*>(dlsym(loader, "hsa_executable_symbol_get_info"));
}

void noteName(SymbolInfo* info, hsa_executable_symbol_t symbol, std::uint64_t object) {
  std::uint32_t length = 0;
  if (info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH, &length) != HSA_STATUS_SUCCESS) return;
  std::string name(length, '\0');
  if (info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_NAME, name.data()) != HSA_STATUS_SUCCESS) return;
  if (name.ends_with(".kd")) name.resize(name.size() - 3);  // the descriptor's symbol
  const std::lock_guard lock(tables().mutex);
  tables().names[object] = name;
}

}  // namespace

std::string kernelName(std::uint64_t object) {
  const std::lock_guard lock(tables().mutex);
  const auto found = tables().names.find(object);
  return found == tables().names.end() ? "" : found->second;
}

std::string nameOfLoadersKernel(const void* descriptor) {
  const std::uint32_t registers =
      static_cast<const amd_kernel_code_t*>(descriptor)->compute_pgm_rsrc1;
  const auto vectors =
      AMD_HSA_BITS_GET(registers, AMD_COMPUTE_PGM_RSRC_ONE_GRANULATED_WORKITEM_VGPR_COUNT);
  const auto scalars =
      AMD_HSA_BITS_GET(registers, AMD_COMPUTE_PGM_RSRC_ONE_GRANULATED_WAVEFRONT_SGPR_COUNT);
  if (scalars == 3 && vectors == 2) return "rocr copy of words";
  if (scalars == 2 && vectors == 2) return "rocr copy of bytes";
  if (scalars == 2 && vectors == 1) return "rocr fill";
  return "";
}

StandIn standIn(const std::string& name) {
  const std::lock_guard lock(tables().mutex);
  const auto found = tables().stand_ins.find(name);
  return found == tables().stand_ins.end() ? StandIn{} : found->second;
}

void lockKernels() { tables().mutex.lock(); }
void unlockKernels() { tables().mutex.unlock(); }

}  // namespace played

extern "C" [[gnu::visibility("default")]] hsa_status_t hsa_executable_symbol_get_info(
    hsa_executable_symbol_t symbol, hsa_executable_symbol_info_t attribute, void* value) {
  static auto* const next = played::loadersFunction();
  if (next == nullptr) return HSA_STATUS_ERROR;
  const hsa_status_t status = next(symbol, attribute, value);
  if (status == HSA_STATUS_SUCCESS && attribute == HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT)
    played::noteName(next, symbol, *static_cast<std::uint64_t*>(value));
  return status;
}

extern "C" [[gnu::visibility("default")]] void playedKernel(const char* name, PlayedKernelRun* run,
                                                            PlayedKernelTime* time) {
  const std::lock_guard lock(played::tables().mutex);
  played::tables().stand_ins[name] = {run, time};
}
