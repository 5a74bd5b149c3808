// Call stacks are unwound with the tables that exceptions use: programs need no frame pointers.
#include "allocator/engine/history/host_stack.hpp"

#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>
#include <unwind.h>

namespace cistern {
namespace {

/// The addresses of the shared library that this code is in; none if it is in the program itself.
struct OwnLibrary {
  std::uintptr_t begin = 0, end = 0;
  bool has(std::uintptr_t word) const { return word - begin < end - begin; }
};

// The program's own entry has no name, so that it is never taken for the library.
int findOwn(dl_phdr_info* module, std::size_t, void* into) {
  const auto here = reinterpret_cast<std::uintptr_t>(&gatherHostStack);
  OwnLibrary found{UINTPTR_MAX, 0};
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = module->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const std::uintptr_t from = module->dlpi_addr + part.p_vaddr;
    found.begin = from < found.begin ? from : found.begin;
    found.end = from + part.p_memsz > found.end ? from + part.p_memsz : found.end;
  }
  if (!found.has(here)) return 0;
  if (module->dlpi_name != nullptr && module->dlpi_name[0] != '\0')
    *static_cast<OwnLibrary*>(into) = found;
  return 1;
}

const OwnLibrary& ownLibrary() {
  static const OwnLibrary own = [] {
    OwnLibrary found;
    (void)dl_iterate_phdr(findOwn, &found);
    return found;
  }();
  return own;
}

struct Gathered {
  std::uintptr_t* words;
  std::size_t most, count;
  const OwnLibrary& own;
};

_Unwind_Reason_Code noteFrame(_Unwind_Context* context, void* into) {
  Gathered& to = *static_cast<Gathered*>(into);
  const std::uintptr_t word = _Unwind_GetIP(context);
  if (word == 0 || to.count == to.most) return _URC_END_OF_STACK;
  if (to.count > 0 || !to.own.has(word)) to.words[to.count++] = word;
  return _URC_NO_REASON;
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return text ? text.get() : name;
}

// The program's own entry among the modules has no name.
std::string ownProgram() {
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  return length > 0 ? std::string(path.data(), std::size_t(length)) : "program";
}

}  // namespace

std::size_t gatherHostStack(std::uintptr_t* words, std::size_t most) noexcept {
  Gathered to{words, most, 0, ownLibrary()};
  (void)_Unwind_Backtrace(noteFrame, &to);
  return to.count;
}

// A return address may be the first of the next function, so the call before it is looked up. The
// offset is an address as the module's file has it, also of a program that is not moved when it is
// loaded.
StackFrame hostFrameOf(std::uintptr_t word) {
  StackFrame frame;
  Dl_info info{};
  link_map* module = nullptr;
  const std::uintptr_t call = word - 1;
  if (dladdr1(reinterpret_cast<const void*>(call), &info,  // NOLINT
              reinterpret_cast<void**>(&module), RTLD_DL_LINKMAP) == 0 ||
      module == nullptr) {
    frame.function = fmt::format("{:#x}", call);
    return frame;
  }
  const std::string path = *module->l_name != '\0' ? module->l_name : ownProgram();
  const std::uintptr_t offset = call - module->l_addr;
  frame.file = fmt::format("{}+{:#x}", path, offset);
  frame.function = info.dli_sname != nullptr
                       ? demangled(info.dli_sname)
                       : fmt::format("{}+{:#x}", path.substr(path.rfind('/') + 1), offset);
  return frame;
}

bool isOwnFunction(const StackFrame& frame) noexcept {
  const std::string_view name = frame.function;
  return name.substr(0, 9) == "cistern::" || name.substr(0, 8) == "cistern_";
}

}  // namespace cistern
