#include "tests/hip/device/dma_buf.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace played {
namespace {

constexpr std::uint64_t kMark = 0x66756220616d6420;  // " dma buf"

struct Record {
  std::uint64_t mark = kMark;
  std::uint64_t offset = 0;
};

}  // namespace

int exportPages(const Pages& pages) {
  const int made = memfd_create("played-dma-buf", MFD_CLOEXEC);
  const Record record{kMark, pages.offset()};
  if (made >= 0 && pwrite(made, &record, sizeof(record), 0) == sizeof(record)) return made;
  if (made >= 0) (void)close(made);
  return -1;
}

std::shared_ptr<Pages> importPages(const Memory& memory, int descriptor) {
  Record record;
  if (pread(descriptor, &record, sizeof(record), 0) != sizeof(record) || record.mark != kMark)
    return nullptr;
  return memory.pagesAt(record.offset);
}

}  // namespace played
