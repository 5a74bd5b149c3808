#include <cstdio>
#include <cstdlib>
#include <new>

#include <dlfcn.h>
#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "cistern/report.hpp"

namespace cistern {
namespace {

std::string codeName(const void* code) {
  Dl_info info{};
  if (dladdr(code, &info) == 0) return fmt::format("{}", code);
  const auto offset = [&](const void* from) {
    return static_cast<const char*>(code) - static_cast<const char*>(from);
  };
  if (info.dli_sname) return fmt::format("{}+{:#x}", info.dli_sname, offset(info.dli_saddr));
  return fmt::format("{}+{:#x}", info.dli_fname, offset(info.dli_fbase));
}

std::string blockText(const Misuse& m) {
  return fmt::format(
      "the block {:#x} of {} ({})", m.block, formatBytes(m.block_bytes),
      m.stream.raw == 0 ? "default stream" : fmt::format("stream {:#x}", m.stream.raw));
}

}  // namespace

std::string Misuse::text() const {
  const std::string head = fmt::format("{} of {:#x}: ", verb, pointer);
  switch (kind) {
    case MisuseKind::kForeignPointer:
      return head + "this allocator never gave it out";
    case MisuseKind::kInteriorPointer:
      return head +
             fmt::format("it points {} into {}", formatBytes(pointer - block), blockText(*this));
    case MisuseKind::kDoubleFree:
      break;
  }
  std::string text = head + "it is not allocated; it lies in " + blockText(*this) + ", free";
  if (freed_by == nullptr) return text + ", freed longer ago than is remembered (option free_log)";
  return text + fmt::format(", freed by {} on thread {}", codeName(freed_by), freed_on_thread);
}

void defaultMisuseHook(const Misuse& misuse) {
  try {
    std::fprintf(stderr, "cistern: %s\n", misuse.text().c_str());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "cistern: %s of a pointer that is no allocated block's\n",
                 misuse.verb.c_str());
  }
#if defined(CISTERN_DEBUG)
  std::abort();
#endif
}

}  // namespace cistern
