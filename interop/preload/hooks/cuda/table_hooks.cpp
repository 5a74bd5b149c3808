// Tables of functions that the driver keeps for NVIDIA's own libraries (cuGetExportTable).
//
// Both CUDA runtimes ask for the same six at their start. They are for the modules that are
// compiled into a program, for the runtimes' data of each context, and for tools. The runtimes
// launch and copy by the public functions, and ask for these by name. So do the libraries that have
// the runtime in them. Some of these ask for a seventh table, for the numbers of contexts. Any
// other table may have functions that submit work. Its functions are replaced by stubs, as all
// unknown functions are. If its contents cannot be determined, no cut is put off any more
// (ContextOrder::unfollow).
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>

#include <link.h>

#include "allocator/base/mutex.hpp"
#include "interop/preload/hooks/hook_entry.hpp"
#include "interop/preload/hooks/rows.hpp"

using namespace cistern::preload;
using namespace cistern::preload::cuda;

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
     0x93},  // data kept with contexts
    {0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1,
     0xf2},  // whether the driver is NVIDIA's
    {0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa,
     0x7e},  // whether a context is one
};
// Its function at kNumber returns a context's number.
constexpr Id kOfContexts = {0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48,
                            0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8, 0xf2};
constexpr std::size_t kNumber = 4;
constexpr std::size_t kMostEntries = 1024;

// The code of the library that a table lies in.
struct Code {
  std::uintptr_t table;
  std::uintptr_t begin = 0, end = 0;
  bool holds(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return at >= begin && at < end;
  }
};

int findCode(dl_phdr_info* library, std::size_t, void* wanted) {
  auto& code = *static_cast<Code*>(wanted);
  bool here = false;
  Code found{code.table};
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = library->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const Code bounds{0, library->dlpi_addr + part.p_vaddr,
                      library->dlpi_addr + part.p_vaddr + part.p_memsz};
    here |= bounds.holds(reinterpret_cast<const void*>(code.table));
    if ((part.p_flags & PF_X) != 0) found = {code.table, bounds.begin, bounds.end};
  }
  if (here) code = found;
  return here ? 1 : 0;
}

// A table begins with its own size in bytes. Null where it does not.
const void* withStubs(void* const* table, const Id& id) {
  const std::uintptr_t bytes = reinterpret_cast<std::uintptr_t>(table[0]);
  const std::size_t entries = bytes / sizeof(void*);
  Code code{reinterpret_cast<std::uintptr_t>(table)};
  if (bytes % sizeof(void*) != 0 || entries < 2 || entries > kMostEntries ||
      dl_iterate_phdr(findCode, &code) == 0) {
    return nullptr;
  }
  auto* const copy = new void*[entries];
  std::copy(table, table + entries, copy);
  for (std::size_t i = 1; i < entries; ++i) {
    const bool known = id == kOfContexts && i == kNumber;
    if (!known && code.holds(copy[i])) copy[i] = unknownWork(copy[i]);
  }
  return copy;
}

void note(const char* what, const Id& id) {
  char text[40];
  std::snprintf(text, sizeof text, "%s_%02x%02x%02x%02x", what, id[0], id[1], id[2], id[3]);
  noteUnknown(text);
}

// One copy for each table, which stays.
const void* answerFor(const void* table, const Id& id) {
  static cistern::Mutex mutex{cistern::LockRank::kDriverTables};
  static auto& copies = *new std::map<const void*, const void*>;
  const cistern::MutexLock lock(mutex);
  const auto [it, is_new] = copies.try_emplace(table, nullptr);
  if (!is_new) return it->second;
  it->second = withStubs(static_cast<void* const*>(table), id);
  note(it->second != nullptr ? "table" : "unseen_table", id);
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
