// The HIP backend of a build without HIP: the same doors, all of them shut.
#include "allocator/device/vendor/absent.hpp"
#include "allocator/device/vendor/vendor.hpp"

namespace cistern::hip {

bool compiledIn() { return false; }
Result<int> deviceCount() { return notBuiltIn("HIP"); }
Result<std::unique_ptr<Device>> open(int) { return notBuiltIn("HIP"); }

}  // namespace cistern::hip
