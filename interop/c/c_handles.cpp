// Says what a number is that a call takes for a handle and cannot use.
#include <array>

#include <fmt/format.h>

#include "interop/c/objects.hpp"

namespace cistern::capi {
namespace {

/// The words of messages on each kind, in the order of Kind.
struct KindOfHandle {
  const char* name;
  const char* ended;  ///< how its handles end
  HandleFate (*fate)(Word handle) noexcept;
};

const KindOfHandle* findKind(Kind kind) noexcept {
  static constexpr std::array<KindOfHandle, 5> kKinds = {{
      {"an allocator", "destroyed", &HandleTable<AllocatorObject>::fateOf},
      {"a pool", "destroyed", &HandleTable<PoolObject>::fateOf},
      {"a capture", "released", &HandleTable<CaptureObject>::fateOf},
      {"a hold", "ended", &HandleTable<HoldObject>::fateOf},
      {"a hook", "detached", &HandleTable<MemoryHookObject>::fateOf},
  }};
  const Word row = Word(kind) - Word(Kind::kAllocator);
  return row < kKinds.size() ? &kKinds[row] : nullptr;
}

std::string whatItIs(Word handle) {
  const KindOfHandle* const kind = findKind(kindOf(handle));
  const HandleFate fate = kind == nullptr ? HandleFate::kNeverGiven : kind->fate(handle);
  if (fate == HandleFate::kNeverGiven) return "was never given out as a handle";
  return fate == HandleFate::kValid
             ? fmt::format("is the handle of {}", kind->name)
             : fmt::format("is the handle of {} that was {}", kind->name, kind->ended);
}

}  // namespace

void refuseHandle(Word handle, Kind wanted) {
  const char* const name = findKind(wanted)->name;
  if (handle == 0)
    throw Failure(CISTERN_INVALID_HANDLE, fmt::format("the handle of {} is null", name));
  throw Failure(CISTERN_INVALID_HANDLE,
                fmt::format("{:#x} {}; {} is needed", handle, whatItIs(handle), name));
}

void refuseForked(Kind kind) {
  throw Failure(
      CISTERN_INVALID_STATE,
      fmt::format("{} from before a fork cannot be used in the child", findKind(kind)->name));
}

}  // namespace cistern::capi
