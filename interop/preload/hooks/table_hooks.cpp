// Tables of functions that the driver keeps for NVIDIA's own libraries (cuGetExportTable).
//
// Both CUDA runtimes ask for the same six, at their start: for the modules that are compiled into a
// program, for what they keep with each context, for tools. They launch and copy by the functions
// that everybody has, and ask for these by name. So do the libraries that have the runtime in them;
// some ask for a seventh, for the numbers of contexts. Any other table may have functions that
// submit work. What is in it is answered with stubs, as everything is that is not known; where it
// cannot be told what is in it, no cut is put off any more (ContextOrder::unfollow).
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include <link.h>

#include "interop/preload/hooks/entry.hpp"
#include "interop/preload/hooks/rows.hpp"

using namespace cistern::preload;

namespace {

using Id = std::array<unsigned char, 16>;

constexpr Id kOfTheRuntimes[] = {
    {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d,
     0xf9},  // modules, and primary contexts
    {0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a,
     0x66},  // tools that are called back
    {0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec,
     0xdc},  // what tools keep with threads
    {0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95,
     0x93},  // what is kept with contexts
    {0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1,
     0xf2},  // whether the driver is NVIDIA's
    {0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa,
     0x7e},  // whether a context is one
};
// What a context's number is, by its function at kNumber.
constexpr Id kOfContexts = {0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48,
                            0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8, 0xf2};
constexpr std::size_t kNumber = 4;
constexpr std::size_t kMostEntries = 1024;

// Whether there is code at the address.
bool isCode(const void* address) {
  const auto holds = [](dl_phdr_info* library, std::size_t, void* wanted) {
    const auto at = reinterpret_cast<std::uintptr_t>(wanted);
    for (int i = 0; i < library->dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = library->dlpi_phdr[i];
      const std::uintptr_t begin = library->dlpi_addr + part.p_vaddr;
      if (part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0 && at >= begin &&
          at < begin + part.p_memsz) {
        return 1;
      }
    }
    return 0;
  };
  return dl_iterate_phdr(holds, const_cast<void*>(address)) != 0;
}

// A table begins with its own size in bytes. Null where it does not.
const void* withStubs(void* const* table, const Id& id) {
  const std::uintptr_t bytes = reinterpret_cast<std::uintptr_t>(table[0]);
  const std::size_t entries = bytes / sizeof(void*);
  if (bytes % sizeof(void*) != 0 || entries < 2 || entries > kMostEntries) return nullptr;
  auto* const copy = new void*[entries];
  std::copy(table, table + entries, copy);
  for (std::size_t i = 1; i < entries; ++i) {
    const bool known = id == kOfContexts && i == kNumber;
    if (!known && isCode(copy[i])) copy[i] = unknownWork(copy[i], "a private table");
  }
  return copy;
}

// One copy for each table, which stays.
const void* answerFor(const void* table, const Id& id) {
  static std::mutex mutex;
  static auto& copies = *new std::map<const void*, const void*>;
  const std::lock_guard lock(mutex);
  const auto [it, is_new] = copies.try_emplace(table, nullptr);
  if (is_new) it->second = withStubs(static_cast<void* const*>(table), id);
  return it->second;
}

}  // namespace

CISTERN_HOOK CUresult cuGetExportTable(const void** table, const CUuuid* id) {
  const Entry entry;
  const CUresult result = entry.pass(&Functions::cuGetExportTable, table, id);
  if (result != CUDA_SUCCESS || !entry.serves() || *table == nullptr) return result;
  Id asked{};
  std::memcpy(asked.data(), id->bytes, asked.size());
  const auto* const end = std::end(kOfTheRuntimes);
  if (std::find(std::begin(kOfTheRuntimes), end, asked) != end) return result;
  if (const void* const stubs = answerFor(*table, asked)) {
    *table = stubs;
  } else {
    contexts().workIsUnseen();
  }
  return result;
}
