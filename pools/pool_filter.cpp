#include "allocator/engine/ground/hooks.hpp"
#include "cistern/error.hpp"
#include "cistern/pool.hpp"

namespace cistern {

PoolFilter PoolFilter::streams(std::function<bool(Stream)> catches) {
  if (!catches) throw InvalidArgument("PoolFilter::streams: the function is empty");
  return PoolFilter{std::move(catches)};
}

bool PoolFilter::catches(Stream stream) const {
  static constexpr char kAny = 0;  // stands for all filters
  if (HookScope::inside(&kAny)) return false;
  const HookScope inside(&kAny);
  return catches_(stream);
}

}  // namespace cistern
