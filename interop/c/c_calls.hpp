// How a call of the API is written: with the object of its handle, and with what it writes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "allocator/engine/ground/hooks.hpp"
#include "cistern/statistics.hpp"
#include "interop/c/objects.hpp"

namespace cistern::capi {

inline Use<AllocatorObject> useOf(cistern_allocator_t handle) {
  return Use<AllocatorObject>(wordOf(handle));
}
inline Use<PoolObject> useOf(cistern_pool_t handle) { return Use<PoolObject>(wordOf(handle)); }

/// Calls call(object) with the object of the handle in use.
template <class Handle, class Call>
cistern_status_t on(Handle handle, Call call) noexcept {
  return guarded([&] { call(*useOf(handle)); });
}

/// Writes what read(object) returns. `name`: the parameter's.
template <class Handle, class Out, class Read>
cistern_status_t read(Handle handle, Out* out, const char* name, Read read) noexcept {
  return guarded([&] {
    requireGiven(out, name);
    *out = read(*useOf(handle));
  });
}

/// The same of a text. `length`: in, the buffer's bytes; out, those that the text takes with its
/// end. A null buffer asks for that alone. CISTERN_BUFFER_TOO_SMALL with the length set.
template <class Read>
cistern_status_t readText(cistern_allocator_t handle, char* buffer, std::size_t* length,
                          Read read) noexcept {
  return guarded([&] {
    requireGiven(length, "length");
    const std::string text = read(*useOf(handle));
    const std::size_t room = std::exchange(*length, text.size() + 1);
    if (buffer == nullptr) return;
    if (room < *length) {
      throw Failure(CISTERN_BUFFER_TOO_SMALL,
                    fmt::format("the text takes {} bytes, and the buffer has {}", *length, room));
    }
    std::memcpy(buffer, text.c_str(), *length);
  });
}

/// The same of a struct of any size from `least` on, of that type's name: an older program's has
/// fewer fields.
template <class Struct, class Read>
cistern_status_t readSized(cistern_allocator_t handle, Struct* out, const char* name,
                           std::size_t least, Read read) noexcept {
  return guarded([&] {
    requireGiven(out, "statistics");
    const auto use = useOf(handle);
    if (out->size < least) {
      throw Failure(CISTERN_INVALID_ARGUMENT,
                    fmt::format("{}::size is {}; it must be set to the struct's, which is at least "
                                "{}",
                                name, out->size, least));
    }
    Struct all = read(*use);
    all.size = std::min(out->size, sizeof(all));
    std::memcpy(out, &all, all.size);
  });
}

/// Calls, and says of an argument that is wrong that it is the pointer.
template <class Call>
auto aboutPointer(Call call) {
  try {
    return call();
  } catch (const InvalidArgument& error) {
    throw Failure(CISTERN_INVALID_POINTER, error.what());
  }
}

/// Calls free() or its like. Throws if the pointer was none to call it with.
template <class Call>
void withPointer(const void* pointer, Call call) {
  const MisuseScope scope(pointer);
  call();
  if (scope.misuse()) throw Failure(CISTERN_INVALID_POINTER, scope.misuse()->text());
}

/// Ends a handle whose object goes with it.
template <class T>
cistern_status_t release(Word handle) noexcept {
  return guarded([&] {
    requireOutside(handle);
    if (abandonForked<T>(handle)) return;
    if (HandleTable<T>::remove(handle) == nullptr) refuseHandle(handle, T::kKind);
  });
}

inline cistern_stat_t valueOf(const StatValue& value) {
  return {value.current, value.peak, value.allocated, value.freed};
}

}  // namespace cistern::capi
