// The memory that the driver hands out, and the address space of each GPU: which buffer lies at an
// address, and whether this GPU has it mapped.
//
// Memory of a GPU (VRAM) and of the driver (GTT) lies in one memory file, which is also what the
// render node's descriptor names. So the program maps a buffer with mmap, at the offset that it was
// told, and the played GPU has a mapping of its own: what the program may touch is not what a GPU
// may touch. A freed buffer is in no address space from then on. Its part of the file becomes a
// hole when nothing names it: a page of virtual memory may be mapped at several addresses, and be
// imported.
//
// Under the lock of the process's state (process.hpp), all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace played {

/// What a GPU touches without a mapping. Thrown where the work is done; the engine reports it.
struct PageFault {
  std::uint64_t address;
  bool writes;
};

enum class Access { kRead, kWrite };

/// A part of the memory file, and the GPU's memory that it takes, for as long as it is named.
class Pages {
 public:
  /// `used` counts a GPU's memory.
  Pages(int file, std::uint64_t offset, std::uint64_t bytes, std::uint64_t& used);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::uint64_t offset() const { return offset_; }
  std::uint64_t bytes() const { return bytes_; }
  std::byte* here() const { return here_; }

  std::uint32_t flags = 0;  ///< KFD_IOC_ALLOC_MEM_FLAGS_…
  int gpu = 0;              ///< whose memory it is, if it is VRAM

 private:
  const int file_;
  const std::uint64_t offset_, bytes_;
  std::uint64_t& used_;
  std::byte* here_ = nullptr;
};

struct Buffer {
  std::uint64_t address = 0;  ///< for the GPUs; 0: pages that are mapped elsewhere
  std::uint64_t bytes = 0;
  std::uint32_t flags = 0;       ///< KFD_IOC_ALLOC_MEM_FLAGS_…
  int gpu = 0;                   ///< whose memory it is, if it is VRAM
  std::shared_ptr<Pages> pages;  ///< none: the program's own memory (userptr)
  std::byte* here = nullptr;     ///< where this process's engine reads and writes it
  std::uint32_t mapped_on = 0;   ///< a bit for each GPU
};

class Memory {
 public:
  /// `file` is the render node's, and the buffers' offsets in it begin at `first_offset`.
  Memory(int file, std::uint64_t first_offset, int gpus)
      : file_(file), next_offset_(first_offset), vram_used_(std::size_t(gpus)) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// The buffer's handle, or 0 if there is no memory for it. `wanted.here` is the program's address
  /// of its own memory.
  std::uint64_t allocate(Buffer wanted);
  /// False if there is no such buffer.
  bool free(std::uint64_t handle);
  /// Null if there is no such buffer.
  Buffer* find(std::uint64_t handle);

  /// Maps a part of the pages at the address on this GPU, where nothing else of it is.
  bool map(const std::shared_ptr<Pages>& pages, std::uint64_t offset, std::uint64_t bytes,
           std::uint64_t address, int gpu);
  /// False if the GPU has no such mapping.
  bool unmap(std::uint64_t bytes, std::uint64_t address, int gpu);
  /// A buffer without an address, over pages that there are.
  std::uint64_t add(const std::shared_ptr<Pages>& pages, std::uint64_t address);
  /// The pages at this offset of the file; null if nothing names them.
  std::shared_ptr<Pages> pagesAt(std::uint64_t offset) const;
  std::uint64_t freeVram(int gpu) const;

  /// [address, address + bytes) as this process sees it, which GPU `gpu` has mapped.
  std::byte* at(int gpu, std::uint64_t address, std::uint64_t bytes, Access access);

  void copy(int gpu, std::uint64_t to, std::uint64_t from, std::uint64_t bytes);
  void fill(int gpu, std::uint64_t to, const void* pattern, std::size_t pattern_bytes,
            std::uint64_t times);

 private:
  /// Mappings of several pages, side by side, as a kernel sees them.
  struct View {
    std::uint64_t address, bytes;
    std::byte* here;
  };

  Buffer& bufferAt(int gpu, std::uint64_t address, Access access);
  bool place(Buffer& buffer);
  std::uint64_t keep(const Buffer& buffer);
  std::byte* joined(int gpu, std::uint64_t address, std::uint64_t bytes, Access access);
  void dropViews();

  const int file_;
  std::uint64_t next_offset_;
  std::vector<std::uint64_t> vram_used_;  ///< bytes, of each GPU
  std::uint64_t gtt_used_ = 0;            ///< bytes of the host's
  std::uint64_t next_handle_ = 1;
  std::map<std::uint64_t, Buffer> buffers_;            ///< by handle
  std::map<std::uint64_t, std::uint64_t> by_address_;  ///< address -> handle
  std::map<std::uint64_t, std::weak_ptr<Pages>> by_offset_;
  std::vector<View> views_;  ///< made when a kernel needs one; none outlives a mapping
};

}  // namespace played
