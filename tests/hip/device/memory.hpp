// The memory that the driver hands out, and the address space of each GPU: which buffer lies at an
// address, and whether this GPU has it mapped.
//
// Memory of a GPU (VRAM) and of the driver (GTT) lies in one memory file, which is also what the
// render node's descriptor names. So the program maps a buffer with mmap, at the offset that it was
// told, and the played GPU has a mapping of its own: what the program may touch is not what a GPU
// may touch. A freed buffer is in no address space from then on, and its part of the file is a
// hole.
//
// Under the lock of the process's state (process.hpp), all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace played {

/// What a GPU touches without a mapping. Thrown where the work is done; the engine reports it.
struct PageFault {
  std::uint64_t address;
  bool writes;
};

enum class Access { kRead, kWrite };

struct Buffer {
  std::uint64_t address = 0;  ///< for the GPUs
  std::uint64_t bytes = 0;
  std::uint32_t flags = 0;      ///< KFD_IOC_ALLOC_MEM_FLAGS_…
  int gpu = 0;                  ///< whose memory it is, if it is VRAM
  std::uint64_t offset = 0;     ///< in the file; not for the program's own memory (userptr)
  std::byte* here = nullptr;    ///< where this process's engine reads and writes it
  std::uint32_t mapped_on = 0;  ///< a bit for each GPU
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

  /// [address, address + bytes) as this process sees it; in one buffer, which GPU `gpu` has mapped.
  std::byte* at(int gpu, std::uint64_t address, std::uint64_t bytes, Access access);

  void copy(int gpu, std::uint64_t to, std::uint64_t from, std::uint64_t bytes);
  void fill(int gpu, std::uint64_t to, const void* pattern, std::size_t pattern_bytes,
            std::uint64_t times);

 private:
  Buffer& bufferAt(int gpu, std::uint64_t address, Access access);
  void place(Buffer& buffer);

  const int file_;
  std::uint64_t next_offset_;
  std::vector<std::uint64_t> vram_used_;  ///< bytes, of each GPU
  std::uint64_t next_handle_ = 1;
  std::map<std::uint64_t, Buffer> buffers_;            ///< by handle
  std::map<std::uint64_t, std::uint64_t> by_address_;  ///< address -> handle
};

}  // namespace played
