#include "allocator/device/sim/backing.hpp"

#include <sys/mman.h>

#include "allocator/base/check.hpp"

namespace cistern::sim {

Backing::~Backing() {
  if (data_ != nullptr) CISTERN_CHECK(munmap(data_, bytes_) == 0);
}

std::byte* Backing::data() {
  if (data_ == nullptr) {
    void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CISTERN_CHECK(mapped != MAP_FAILED);
    data_ = static_cast<std::byte*>(mapped);
  }
  return data_;
}

}  // namespace cistern::sim
