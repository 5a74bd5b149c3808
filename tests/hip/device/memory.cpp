#include "tests/hip/device/memory.hpp"

#include <algorithm>
#include <cstring>

#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <sys/mman.h>

#include "tests/hip/device/settings.hpp"

namespace played {
namespace {

bool isVram(const Buffer& buffer) { return (buffer.flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) != 0; }
bool isUsers(const Buffer& buffer) { return (buffer.flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) != 0; }

constexpr std::uint64_t kPage = 4096;
std::uint64_t wholePages(std::uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

// Offsets are not used again, so a mapping that outlives its buffer never shows another's bytes.
void Memory::place(Buffer& buffer) {
  buffer.offset = next_offset_;
  next_offset_ += wholePages(buffer.bytes);
  void* mapped = mmap(nullptr, buffer.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                      file_, off_t(buffer.offset));
  buffer.here = mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
}

std::uint64_t Memory::allocate(Buffer wanted) {
  if (isVram(wanted)) {
    std::uint64_t& used = vram_used_[std::size_t(wanted.gpu)];
    const std::uint64_t bytes = wholePages(wanted.bytes);
    if (bytes > settings().vram_bytes - used) return 0;
    used += bytes;
  }
  if (!isUsers(wanted)) place(wanted);
  if (wanted.here == nullptr) return 0;
  const std::uint64_t handle = next_handle_++;
  by_address_[wanted.address] = handle;
  buffers_[handle] = wanted;
  return handle;
}

bool Memory::free(std::uint64_t handle) {
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return false;
  const Buffer buffer = found->second;
  buffers_.erase(found);
  const auto at = by_address_.find(buffer.address);
  if (at != by_address_.end() && at->second == handle) by_address_.erase(at);
  if (isVram(buffer)) vram_used_[std::size_t(buffer.gpu)] -= wholePages(buffer.bytes);
  if (isUsers(buffer)) return true;
  (void)munmap(buffer.here, buffer.bytes);
  (void)fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(buffer.offset),
                  off_t(wholePages(buffer.bytes)));
  return true;
}

Buffer* Memory::find(std::uint64_t handle) {
  const auto found = buffers_.find(handle);
  return found == buffers_.end() ? nullptr : &found->second;
}

Buffer& Memory::bufferAt(int gpu, std::uint64_t address, Access access) {
  auto next = by_address_.upper_bound(address);
  if (next == by_address_.begin()) throw PageFault{address, access == Access::kWrite};
  Buffer& buffer = buffers_.at(std::prev(next)->second);
  if (address - buffer.address >= buffer.bytes || (buffer.mapped_on >> gpu & 1U) == 0)
    throw PageFault{address, access == Access::kWrite};
  return buffer;
}

std::byte* Memory::at(int gpu, std::uint64_t address, std::uint64_t bytes, Access access) {
  const Buffer& buffer = bufferAt(gpu, address, access);
  const std::uint64_t within = address - buffer.address;
  if (bytes > buffer.bytes - within)
    throw PageFault{buffer.address + buffer.bytes, access == Access::kWrite};
  return buffer.here + within;
}

void Memory::copy(int gpu, std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  while (bytes > 0) {
    const Buffer& source = bufferAt(gpu, from, Access::kRead);
    const Buffer& target = bufferAt(gpu, to, Access::kWrite);
    const std::uint64_t in_source = from - source.address;
    const std::uint64_t in_target = to - target.address;
    const std::uint64_t piece =
        std::min({bytes, source.bytes - in_source, target.bytes - in_target});
    std::memmove(target.here + in_target, source.here + in_source, piece);
    to += piece;
    from += piece;
    bytes -= piece;
  }
}

void Memory::fill(int gpu, std::uint64_t to, const void* pattern, std::size_t pattern_bytes,
                  std::uint64_t times) {
  if (times == 0) return;
  std::byte* target = at(gpu, to, pattern_bytes * times, Access::kWrite);
  for (std::uint64_t i = 0; i < times; ++i)
    std::memcpy(target + i * pattern_bytes, pattern, pattern_bytes);
}

}  // namespace played
