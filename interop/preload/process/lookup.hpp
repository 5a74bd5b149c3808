// What dlsym is answered with in place of a vendor's functions.
#pragma once

namespace cistern::preload {

// The hook for what the C library would answer; null: let it. Not there where this build has no
// hooks for the vendor.
[[gnu::weak]] void* cudaHook(void* handle, const char* name) noexcept;
[[gnu::weak]] void* hipHook(void* handle, const char* name) noexcept;

}  // namespace cistern::preload
