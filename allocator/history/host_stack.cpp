// Call stacks are unwound with the tables that exceptions use: programs need no frame pointers.
#include "allocator/history/host_stack.hpp"

#include <array>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>
#include <unwind.h>

#include "allocator/base/thread_slots.hpp"

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

/// Frames that a walk visits: some of Cistern's own are in front of those that are kept.
constexpr std::size_t kMostVisited = kMostFrames + 16;

/// A frame of a stack as it was walked.
struct Visited {
  std::uintptr_t word = 0;  ///< where it goes on
  std::uintptr_t top = 0;   ///< its stack pointer there
  std::uintptr_t base = 0;  ///< its frame pointer there, or whatever the register holds
  std::uintptr_t slot = 0;  ///< where it keeps its caller's `base`; 0: it is its own
};

/// A stack, innermost first. It is sound if a frame's caller follows from the frame: its word
/// stands just below its top, and its base in the frame's slot. Then it ends where the stack does.
struct Trail {
  std::size_t count = 0;
  std::array<Visited, kMostVisited> frames{};
  bool sound = false;
};

// Reads a word of the calling thread's stack, which sanitizers may take for a variable's border.
#if defined(__GNUC__)
__attribute__((no_sanitize("address", "thread")))
#endif
std::uintptr_t
wordAt(std::uintptr_t address) {
  return *reinterpret_cast<const volatile std::uintptr_t*>(address);  // NOLINT
}

// The caller's base, if the frame has `base` now.
std::uintptr_t baseAround(const Visited& frame, std::uintptr_t base) {
  return frame.slot == 0 ? base : wordAt(frame.slot);
}

bool returnsTo(const Visited& caller) {
  return wordAt(caller.top - sizeof(std::uintptr_t)) == caller.word;
}

// A frame of a size that only the run decides has its caller's top from its base.
bool needsBase(const Visited& frame, const Visited& caller) {
  return frame.base + 2 * sizeof(std::uintptr_t) == caller.top;
}

// The slot is the outermost word of the frame that has the caller's base: it is saved first.
void findSlot(Visited& frame, const Visited& caller) {
  frame.slot = 0;
  if (frame.base == caller.base) return;
  std::uintptr_t at = caller.top - 2 * sizeof(std::uintptr_t);
  while (at > frame.top && wordAt(at) != caller.base) at -= sizeof(std::uintptr_t);
  frame.slot = at;
}

// Other processors keep these words elsewhere. `known`: that many outer frames are sound.
bool makeSound(Trail& trail, std::size_t known) {
#if defined(__x86_64__)
  constexpr std::uintptr_t kMostBytes = std::uintptr_t{1} << 16;  // of a frame
  if (trail.count == kMostVisited || trail.count == 0) return false;
  for (std::size_t i = 0; i + 1 + known < trail.count; ++i) {
    Visited& frame = trail.frames[i];
    const Visited& caller = trail.frames[i + 1];
    if (caller.top - frame.top - 1 >= kMostBytes) return false;
    findSlot(frame, caller);
    if (!returnsTo(caller) || baseAround(frame, frame.base) != caller.base) return false;
  }
  return true;
#else
  (void)trail;
  (void)known;
  return false;
#endif
}

/// Note [Stacks like the one before]
/// To unwind a frame takes 150 ns. As a rule most frames of a stack are those of the thread's last
/// one, which has been unwound. A frame's caller follows from where the frame goes on, from its
/// stack pointer and, if only the run decides the frame's size, from its frame pointer. So where
/// these are as they were, the rest of the stack is as it was, if in each frame the words that lead
/// to the next one are: its return address, and the frame pointer that it keeps for its caller.
/// That takes two loads a frame.
struct StackWalk {
  Trail now;
  const Trail& before;
  std::size_t at = 0;     ///< the frames of `before` in front of this one are further in
  std::size_t known = 0;  ///< frames that were taken from `before`

  bool meetsBefore(const Visited& frame) {
    if (!before.sound) return false;
    while (at < before.count && before.frames[at].top < frame.top) ++at;
    if (at == before.count) return false;
    if (before.frames[at].top != frame.top || before.frames[at].word != frame.word) return false;
    std::uintptr_t base = frame.base;
    for (std::size_t i = at; i + 1 < before.count; ++i) {
      const Visited &one = before.frames[i], &caller = before.frames[i + 1];
      if (!returnsTo(caller) || (needsBase(one, caller) && base != one.base)) return false;
      base = baseAround(one, base);
    }
    return true;
  }
  void add(const Visited& frame) {
    if (now.count < kMostVisited) now.frames[now.count++] = frame;
  }
  void addRest(std::uintptr_t base) {
    known = before.count - at;
    for (; at < before.count; ++at) {
      Visited frame = before.frames[at];
      frame.base = base;
      base = baseAround(frame, base);
      add(frame);
    }
  }
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* into) {
  constexpr int kFramePointer = 6;  // as DWARF numbers x86-64's registers
  StackWalk& walk = *static_cast<StackWalk*>(into);
  const Visited frame{_Unwind_GetIP(context), _Unwind_GetCFA(context),
                      _Unwind_GetGR(context, kFramePointer), 0};
  if (frame.word == 0 || walk.now.count == kMostVisited) return _URC_END_OF_STACK;
  if (walk.meetsBefore(frame)) {
    walk.addRest(frame.base);
    return _URC_END_OF_STACK;
  }
  walk.add(frame);
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

std::size_t gatherHostStack(std::uintptr_t* words, std::size_t most) noexcept try {
  Trail& last = ThreadSlot<Trail>::mine();
  StackWalk walk{{}, last};
  (void)_Unwind_Backtrace(visit, &walk);
  walk.now.sound = makeSound(walk.now, walk.known == 0 ? 0 : walk.known - 1);
  last = walk.now;
  const OwnLibrary& own = ownLibrary();
  std::size_t first = 0, count = 0;
  while (first < last.count && own.has(last.frames[first].word)) ++first;
  for (std::size_t i = first; i < last.count && count < most; ++i)
    words[count++] = last.frames[i].word;
  return count;
} catch (const std::bad_alloc&) {
  return 0;
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
