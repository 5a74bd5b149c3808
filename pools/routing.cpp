// The choice among the active scopes and captures for a request.
#include <algorithm>
#include <iterator>

#include "allocator/base/steps.hpp"
#include "allocator/engine/capture/live_capture.hpp"
#include "pools/scopes.hpp"

namespace cistern {
namespace {

using List = SharedScopes::List;

// The first of those captures that records the stream.
template <class Which>
Route captureOf(Stream stream, const List& scopes, Which which) {
  for (const auto& scope : scopes) {
    if (!scope->capture || !which(*scope->capture)) continue;
    const std::uint32_t part = scope->capture->partOf(stream);
    if (part != 0) return {scope->pool, scope->capture, part, nullptr};
  }
  return {};
}

// The capture that began on the stream comes first, then the one that the device names. A stream
// that one capture includes may have joined another since.
Route captureOf(Stream stream, const List& scopes) {
  const auto began = [&](const LiveCapture& capture) { return capture.beganOn(stream); };
  if (Route route = captureOf(stream, scopes, began); route.capture) return route;
  const auto captures = [](const auto& scope) { return scope->capture != nullptr; };
  const auto first = std::ranges::find_if(scopes, captures);
  if (first != scopes.end() && std::any_of(std::next(first), scopes.end(), captures)) {
    const std::uint64_t id = (*first)->capture->idOf(stream);
    const auto called = [&](const LiveCapture& capture) { return capture.isCalled(id); };
    if (Route route = captureOf(stream, scopes, called); route.capture) return route;
  }
  return captureOf(stream, scopes, [&](const LiveCapture& of) { return !of.beganOn(stream); });
}

// The innermost scope with a filter that catches the stream, among those that began after the scope
// of number `own`.
Route filterOf(Stream stream, const SharedScopes::Candidates& scopes, std::uint64_t own) {
  const SharedScope* const named = scopes.of_stream.get();
  const bool by_name = named && named->number > own && named->filter->catches(stream);
  const std::uint64_t inner = by_name ? named->number : own;
  for (auto scope = scopes.list->rbegin(); scope != scopes.list->rend(); ++scope) {
    const SharedScope& s = **scope;
    if (s.number < inner) break;
    noteSteps(1);
    if (s.filter && s.filter->catches(stream)) return {s.pool, nullptr, 0, s.token};
  }
  return by_name ? Route{named->pool, nullptr, 0, named->token} : Route{};
}

}  // namespace

// A capture comes before any scope. The graph will use the memory that its streams get, and only
// its pool keeps that in place.
Route Scopes::route(Stream stream, Asked asked) {
  const Own* const own = asked == Asked::kCaptures ? nullptr : innermostOwn();
  if (active_shared_.load(std::memory_order_acquire) > 0) {
    SharedScopes::Candidates shared;
    {
      const MutexLock lock(mutex_);
      shared = shared_.candidates(stream);
    }
    Route route = captureOf(stream, *shared.list);
    if (route.capture || asked == Asked::kCaptures) return route;
    Route filtered = filterOf(stream, shared, own ? own->number : 0);
    if (filtered.pool) return filtered;
  }
  return own ? Route{own->pool} : Route{};
}

}  // namespace cistern
