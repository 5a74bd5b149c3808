// Catch2 under one name: version 2 and version 3 differ in their headers and in a few names. Tests
// include this file, use version 3's names, and nothing of Catch2's own.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <string>

#include <catch2/catch.hpp>

namespace Catch {
using Approx = Detail::Approx;
#if defined(CATCH_CONFIG_EXTERNAL_INTERFACES)
using EventListenerBase = TestEventListenerBase;
#endif
namespace Matchers {
inline auto ContainsSubstring(const std::string& text) { return Contains(text); }  // NOLINT
}  // namespace Matchers
}  // namespace Catch
#endif
