// The answers to dlsym in place of a vendor's functions.
#pragma once

namespace cistern::preload {

// The hook for the C library's answer; null: use that answer. Absent if this build has no hooks for
// the vendor.
[[gnu::weak]] void* cudaHook(void* handle, const char* name) noexcept;
[[gnu::weak]] void* hipHook(void* handle, const char* name) noexcept;

// dlsym and dlopen of the C library, which no hook of ours stands before.

void* realDlsym(void* handle, const char* name) noexcept;

/// The function of this name that a program would call without Cistern. It is the C library's, or
/// that of another preloaded library, which hooks dlsym as well.
void* nextInLine(const char* name) noexcept;

/// The handle of a library that the program has loaded; null where it has not. It is not loaded for
/// it.
void* loadedLibrary(const char* name) noexcept;

}  // namespace cistern::preload
