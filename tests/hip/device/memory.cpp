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

Pages::Pages(int file, std::uint64_t offset, std::uint64_t bytes, std::uint64_t& used)
    : file_(file), offset_(offset), bytes_(wholePages(bytes)), used_(used) {
  used_ += bytes_;
  void* const mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                            file, off_t(offset));
  if (mapped != MAP_FAILED) here_ = static_cast<std::byte*>(mapped);
}

Pages::~Pages() {
  used_ -= bytes_;
  if (here_ != nullptr) (void)munmap(here_, bytes_);
  (void)fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(offset_), off_t(bytes_));
}

// Offsets are not used again, so a mapping that outlives its buffer never shows another's bytes.
bool Memory::place(Buffer& buffer) {
  std::uint64_t& used = isVram(buffer) ? vram_used_[std::size_t(buffer.gpu)] : gtt_used_;
  if (isVram(buffer) && wholePages(buffer.bytes) > freeVram(buffer.gpu)) return false;
  buffer.pages = std::make_shared<Pages>(file_, next_offset_, buffer.bytes, used);
  buffer.pages->flags = buffer.flags;
  buffer.pages->gpu = buffer.gpu;
  buffer.here = buffer.pages->here();
  by_offset_[next_offset_] = buffer.pages;
  next_offset_ += buffer.pages->bytes();
  return true;
}

std::uint64_t Memory::keep(const Buffer& buffer) {
  const std::uint64_t handle = next_handle_++;
  if (buffer.address != 0) by_address_[buffer.address] = handle;
  buffers_[handle] = buffer;
  return handle;
}

std::uint64_t Memory::allocate(Buffer wanted) {
  if (!isUsers(wanted) && !place(wanted)) return 0;
  return wanted.here == nullptr ? 0 : keep(wanted);
}

bool Memory::free(std::uint64_t handle) {
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return false;
  dropViews();
  const auto at = by_address_.find(found->second.address);
  if (at != by_address_.end() && at->second == handle) by_address_.erase(at);
  buffers_.erase(found);
  std::erase_if(by_offset_, [](const auto& one) { return one.second.expired(); });
  return true;
}

std::uint64_t Memory::freeVram(int gpu) const {
  return settings().vram_bytes - vram_used_[std::size_t(gpu)];
}

// ---- Pages at several addresses ----------------------------------------------------------------

std::uint64_t Memory::add(const std::shared_ptr<Pages>& pages, std::uint64_t address) {
  Buffer buffer;
  buffer.address = address;
  buffer.bytes = pages->bytes();
  buffer.flags = pages->flags;
  buffer.gpu = pages->gpu;
  buffer.pages = pages;
  buffer.here = pages->here();
  return keep(buffer);
}

std::shared_ptr<Pages> Memory::pagesAt(std::uint64_t offset) const {
  const auto found = by_offset_.find(offset);
  return found == by_offset_.end() ? nullptr : found->second.lock();
}

bool Memory::map(const std::shared_ptr<Pages>& pages, std::uint64_t offset, std::uint64_t bytes,
                 std::uint64_t address, int gpu) {
  const auto found = by_address_.find(address);
  std::uint64_t handle = found == by_address_.end() ? 0 : found->second;
  if (handle == 0) {
    handle = add(pages, address);
    buffers_[handle].bytes = bytes;
    buffers_[handle].here += offset;
  }
  Buffer& buffer = buffers_[handle];
  if (buffer.pages != pages || (buffer.mapped_on >> gpu & 1U) != 0) return false;
  buffer.mapped_on |= 1U << gpu;
  return true;
}

bool Memory::unmap(std::uint64_t bytes, std::uint64_t address, int gpu) {
  const auto found = by_address_.find(address);
  if (found == by_address_.end()) return false;
  Buffer& buffer = buffers_[found->second];
  if (buffer.bytes != bytes || (buffer.mapped_on >> gpu & 1U) == 0) return false;
  dropViews();
  buffer.mapped_on &= ~(1U << gpu);
  return buffer.mapped_on != 0 || free(found->second);
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
  if (bytes > buffer.bytes - within) return joined(gpu, address, bytes, access);
  return buffer.here + within;
}

// Each page's part of the file, at its place in a range of addresses that only the engine has.
std::byte* Memory::joined(int gpu, std::uint64_t address, std::uint64_t bytes, Access access) {
  const std::uint64_t first = address / kPage * kPage;
  const std::uint64_t end = wholePages(address + bytes);
  for (std::uint64_t at = first; at < end;) {
    const Buffer& buffer = bufferAt(gpu, at, access);
    if (buffer.pages == nullptr)
      throw PageFault{buffer.address + buffer.bytes, access == Access::kWrite};
    at = buffer.address + buffer.bytes;
  }
  for (const View& view : views_) {
    if (view.address <= first && end <= view.address + view.bytes)
      return view.here + (address - view.address);
  }
  auto* const here = static_cast<std::byte*>(
      mmap(nullptr, end - first, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  for (std::uint64_t at = first; at < end;) {
    const Buffer& buffer = bufferAt(gpu, at, access);
    const std::uint64_t within = at - buffer.address;
    const std::uint64_t piece = std::min(end - at, buffer.bytes - within);
    const auto offset = std::uint64_t(buffer.here - buffer.pages->here()) + within;
    (void)mmap(here + (at - first), piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_,
               off_t(buffer.pages->offset() + offset));
    at += piece;
  }
  views_.push_back({first, end - first, here});
  return here + (address - first);
}

void Memory::dropViews() {
  for (const View& view : views_) (void)munmap(view.here, view.bytes);
  views_.clear();
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
