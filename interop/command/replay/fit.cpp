#include "interop/command/replay/fit.hpp"

#include <algorithm>

namespace cistern::command {
namespace {

int halvings(std::uint64_t distance, std::uint64_t until) {
  int count = 0;
  for (; distance > until; distance -= distance / 2) ++count;
  return count;
}

}  // namespace

std::uint64_t leastCapacity(std::uint64_t requested, std::uint64_t enough,
                            const std::function<bool(std::uint64_t capacity)>& served,
                            const OnProgress& on_progress) {
  if (enough <= requested) return enough;
  const std::uint64_t close = std::max<std::uint64_t>(requested / 400, 1);
  const double probes = 1 + halvings(enough - requested, close);
  if (served(requested)) return requested;
  std::uint64_t too_little = requested;
  for (double done = 1; enough - too_little > close; ++done) {
    on_progress(std::min(done / probes, 1.0));
    const std::uint64_t middle = too_little + (enough - too_little) / 2;
    (served(middle) ? enough : too_little) = middle;
  }
  return enough;
}

}  // namespace cistern::command
