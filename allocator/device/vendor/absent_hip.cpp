// The HIP backend of a build without HIP: the same doors, all of them shut.
#include "allocator/device/vendor/absent.hpp"
#include "allocator/device/vendor/vendor.hpp"

namespace cistern::hip {

Result<int> deviceCount() { return notBuiltIn("HIP", kHipSdk); }
Result<std::unique_ptr<Device>> open(int) { return notBuiltIn("HIP", kHipSdk); }

constinit const Backend kTableEntry = absentBackend("hip", deviceCount, open);

}  // namespace cistern::hip
