// NVTX is a set of headers. At its first call it loads the library that NVTX_INJECTION64_PATH names
// and calls its InitializeInjectionNvtx2, which puts functions into a table. The types here are
// those of NVTX 3, as far as they are used.
#include "allocator/history/nvtx_ranges.hpp"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include <dlfcn.h>

#include "cistern/history.hpp"

namespace {

using Function = void (*)();
/// An array of pointers to the pointers that NVTX calls.
using FunctionTable = Function**;

struct Callbacks {
  std::size_t struct_size;
  int (*moduleTable)(int module, FunctionTable* table, unsigned* size);
};
using ExportTable = const void* (*)(std::uint32_t id);

constexpr std::uint32_t kCallbacksTable = 1;
constexpr int kCore = 1, kCore2 = 5;  // modules

/// nvtxEventAttributes_t.
struct Attributes {
  std::uint16_t version, size;
  std::uint32_t category;
  std::int32_t colour_type;
  std::uint32_t colour;
  std::int32_t payload_type, reserved;
  std::uint64_t payload;
  std::int32_t message_type;
  const void* message;
};
static_assert(sizeof(Attributes) == 48 && offsetof(Attributes, message) == 40);
constexpr std::int32_t kAscii = 1, kUnicode = 2, kRegistered = 3;

/// A string that the program has registered; never freed, as NVTX never lets go of one.
struct Registered {
  std::string text;
};

// Names are shown to people. What is not ASCII becomes a question mark.
std::string narrow(const wchar_t* text) {
  std::string result;
  for (; text != nullptr && *text != 0; ++text) result += *text < 128 ? char(*text) : '?';
  return result;
}

std::string nameOf(const Attributes* attributes) {
  constexpr std::size_t kLeast = sizeof(Attributes);
  if (attributes == nullptr || attributes->size < kLeast || attributes->message == nullptr)
    return {};
  switch (attributes->message_type) {
    case kAscii:
      return static_cast<const char*>(attributes->message);
    case kUnicode:
      return narrow(static_cast<const wchar_t*>(attributes->message));
    case kRegistered:
      return static_cast<const Registered*>(attributes->message)->text;
    default:
      return {};
  }
}

thread_local constinit int depth = 0;

// A pop must find a label, also if this one is lost for want of host memory: it is the next inner
// one's then, and names are off by one until the outermost range ends.
int push(const std::string& name) noexcept {
  try {
    cistern::pushLabel(name);
  } catch (const std::bad_alloc&) {
  }
  return depth++;
}
int pop() noexcept {
  if (depth == 0) return -2;  // NVTX_NO_PUSH_POP_TRACKING
  cistern::popLabel();
  return --depth;
}
const void* registered(std::string text) noexcept try {
  return new Registered{std::move(text)};
} catch (const std::bad_alloc&) {
  return nullptr;
}

// ---- What NVTX calls ----------------------------------------------------------------------------

int pushEx(const Attributes* attributes) { return push(nameOf(attributes)); }
int pushA(const char* name) { return push(name != nullptr ? name : ""); }
int pushW(const wchar_t* name) { return push(narrow(name)); }
int domainPushEx(const void*, const Attributes* attributes) { return push(nameOf(attributes)); }
int domainPop(const void*) { return pop(); }
const void* domainRegisterA(const void*, const char* text) {
  return registered(text != nullptr ? text : "");
}
const void* domainRegisterW(const void*, const wchar_t* text) { return registered(narrow(text)); }

struct Entry {
  unsigned number;  ///< in the table of its module
  Function function;
};
template <class Result, class... Arguments>
Entry entry(unsigned number, Result (*function)(Arguments...)) {
  return {number, reinterpret_cast<Function>(function)};
}

template <std::size_t Count>
void fill(const Callbacks& callbacks, int module, const std::array<Entry, Count>& entries) {
  FunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks.moduleTable(module, &table, &size) == 0) return;
  for (const Entry& one : entries) {
    if (one.number < size && table[one.number] != nullptr) *table[one.number] = one.function;
  }
}

}  // namespace

/// Not 0: it is in use. NVTX calls it once for each part of the program that has NVTX in it.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    ExportTable exported) {
  const auto* const callbacks =
      exported == nullptr ? nullptr : static_cast<const Callbacks*>(exported(kCallbacksTable));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(Callbacks)) return 0;
  fill(*callbacks, kCore,
       std::array{entry(8, pushEx), entry(9, pushA), entry(10, pushW), entry(11, pop)});
  fill(*callbacks, kCore2,
       std::array{entry(4, domainPushEx), entry(5, domainPop), entry(10, domainRegisterA),
                  entry(11, domainRegisterW)});
  return 1;
}

namespace cistern {

void labelNvtxRanges() noexcept {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&InitializeInjectionNvtx2), &info) == 0) return;
  if (info.dli_fname != nullptr) (void)::setenv("NVTX_INJECTION64_PATH", info.dli_fname, 0);
}

}  // namespace cistern
