// Three strengths of assertion. CISTERN_CHECK always runs; CISTERN_ASSERT runs in debug and audit
// builds and costs nothing in release; CISTERN_AUDIT guards walks that only the audit build can
// afford.
#pragma once

namespace cistern {

/// Prints where and what, then aborts. For broken invariants only, never for bad input.
[[noreturn]] void checkFailed(const char* expression, const char* file, int line) noexcept;

}  // namespace cistern

#define CISTERN_CHECK(expression) \
  ((expression) ? void(0) : ::cistern::checkFailed(#expression, __FILE__, __LINE__))

#if defined(CISTERN_DEBUG) || defined(CISTERN_AUDIT_BUILD)
#define CISTERN_ASSERT(expression) CISTERN_CHECK(expression)
#else
#define CISTERN_ASSERT(expression) void(0)
#endif

#if defined(CISTERN_AUDIT_BUILD)
#define CISTERN_AUDIT(statement) \
  do {                           \
    statement;                   \
  } while (false)
#else
#define CISTERN_AUDIT(statement) void(0)
#endif
