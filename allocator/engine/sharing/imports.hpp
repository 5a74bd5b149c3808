// Pages of other processes, mapped here.
#pragma once

#include <memory>
#include <vector>

#include "cistern/allocator.hpp"

namespace cistern {

/// CachingAllocator::openImport.
std::shared_ptr<void> importPages(Device& device, const std::vector<SharedPage>& pages);

}  // namespace cistern
