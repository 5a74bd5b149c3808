// The answers to dlsym in place of a vendor's functions.
#pragma once

namespace cistern::preload {

// The hook for the C library's answer; null: use that answer. Absent if this build has no hooks for
// the vendor.
[[gnu::weak]] void* cudaHook(void* handle, const char* name) noexcept;
[[gnu::weak]] void* hipHook(void* handle, const char* name) noexcept;

}  // namespace cistern::preload
