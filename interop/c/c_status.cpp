#include "interop/c/c_status.hpp"

#include <array>
#include <new>

#include <fmt/format.h>

#include "allocator/base/thread_slots.hpp"
#include "allocator/engine/ground/segment_map.hpp"
#include "cistern/graph.hpp"
#include "cistern/history.hpp"
#include "cistern/pinned.hpp"
#include "cistern/report.hpp"
#include "cistern/status.hpp"
#include "interop/c/c_calls.hpp"

namespace cistern::capi {
namespace {

struct LastError {
  std::string text;
};
// The text that is used if the text itself could not be kept.
constinit thread_local const char* short_text = nullptr;

cistern_status_t statusOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kOutOfMemory:
      return CISTERN_OUT_OF_MEMORY;
    case ErrorKind::kNoDevice:
      return CISTERN_NO_DEVICE;
    case ErrorKind::kNotSupported:
      return CISTERN_NOT_SUPPORTED;
    default:
      return CISTERN_DEVICE_ERROR;
  }
}

}  // namespace

cistern_status_t fail(cistern_status_t status, const std::string& text) noexcept {
  try {
    ThreadSlot<LastError>::mine().text = text;
    short_text = nullptr;
  } catch (const std::bad_alloc&) {
    short_text = status == CISTERN_OK ? "" : cistern_status_name(status);
  }
  return status;
}

cistern_status_t failCurrent() noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    return fail(failure.status(), failure.what());
  } catch (const OutOfMemory& error) {
    return fail(CISTERN_OUT_OF_MEMORY, error.what());
  } catch (const OutOfPinnedMemory& error) {
    return fail(CISTERN_HOST_OUT_OF_MEMORY, error.what());
  } catch (const HostShortage& error) {
    return fail(CISTERN_HOST_OUT_OF_MEMORY, error.what());
  } catch (const DeviceFailure& error) {
    return fail(statusOf(error.error().kind), error.what());
  } catch (const InvalidArgument& error) {
    return fail(CISTERN_INVALID_ARGUMENT, error.what());
  } catch (const OptionError& error) {
    return fail(CISTERN_INVALID_OPTION, error.what());
  } catch (const HistoryError& error) {
    return fail(CISTERN_IO_ERROR, error.what());
  } catch (const Error& error) {  // of pools and graphs, and what a child of fork may not do
    return fail(CISTERN_INVALID_STATE, error.what());
  } catch (const NoAddresses& error) {
    short_text = error.what();
    return CISTERN_HOST_OUT_OF_MEMORY;
  } catch (const std::bad_alloc&) {
    short_text = "the host is out of memory";
    return CISTERN_HOST_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    return fail(CISTERN_INTERNAL, error.what());
  } catch (...) {
    return fail(CISTERN_INTERNAL, "an exception that is no std::exception");
  }
}

}  // namespace cistern::capi

using namespace cistern::capi;

const char* cistern_last_error() {
  if (short_text != nullptr) return short_text;
  const LastError* const last = cistern::ThreadSlot<LastError>::find();
  return last == nullptr ? "" : last->text.c_str();
}

const char* cistern_status_name(cistern_status_t status) {
  switch (status) {
#define CISTERN_NAME(name) \
  case name:               \
    return #name
    CISTERN_NAME(CISTERN_OK);
    CISTERN_NAME(CISTERN_OUT_OF_MEMORY);
    CISTERN_NAME(CISTERN_HOST_OUT_OF_MEMORY);
    CISTERN_NAME(CISTERN_INVALID_ARGUMENT);
    CISTERN_NAME(CISTERN_INVALID_HANDLE);
    CISTERN_NAME(CISTERN_INVALID_POINTER);
    CISTERN_NAME(CISTERN_INVALID_STATE);
    CISTERN_NAME(CISTERN_INVALID_OPTION);
    CISTERN_NAME(CISTERN_DEVICE_ERROR);
    CISTERN_NAME(CISTERN_NO_DEVICE);
    CISTERN_NAME(CISTERN_NOT_SUPPORTED);
    CISTERN_NAME(CISTERN_IO_ERROR);
    CISTERN_NAME(CISTERN_BUFFER_TOO_SMALL);
    CISTERN_NAME(CISTERN_INTERNAL);
#undef CISTERN_NAME
    default:
      break;
  }
  return "unknown status";
}

namespace cistern::capi {

// Says what a number is that a call takes for a handle and cannot use.

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

#define CISTERN_TEXT_OF(number) #number
#define CISTERN_TEXT(number) CISTERN_TEXT_OF(number)

int cistern_version() { return CISTERN_VERSION; }

const char* cistern_version_string() {
  return CISTERN_TEXT(CISTERN_VERSION_MAJOR) "." CISTERN_TEXT(
      CISTERN_VERSION_MINOR) "." CISTERN_TEXT(CISTERN_VERSION_PATCH);
}
