// The sanitizer of this build: g++ tells it by macros, clang++ by features.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define CISTERN_ADDRESS_SANITIZER
#endif
#if defined(__SANITIZE_THREAD__)
#define CISTERN_THREAD_SANITIZER
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CISTERN_ADDRESS_SANITIZER
#endif
#if __has_feature(thread_sanitizer)
#define CISTERN_THREAD_SANITIZER
#endif
#endif

// For a function whose comment tells why it may race: the thread sanitizer does not check it.
#if defined(CISTERN_THREAD_SANITIZER)
#define CISTERN_RACES __attribute__((no_sanitize("thread")))
#else
#define CISTERN_RACES
#endif
