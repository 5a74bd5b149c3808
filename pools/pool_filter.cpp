#include "allocator/engine/reports/hooks.hpp"
#include "cistern/pool.hpp"

namespace cistern {

bool PoolFilter::catches(Stream stream) const {
  static constexpr char kAny = 0;  // stands for all filters
  if (HookScope::inside(&kAny)) return false;
  const HookScope inside(&kAny);
  return catches_(stream);
}

}  // namespace cistern
