// What stands for the runtime's own kernels: fills, copies and writes of its streams. Their
// parameters are in the OpenCL text that libamdhip64 carries and compiles when a program begins.
#include <algorithm>
#include <cstring>

#include <dlfcn.h>

#include "tests/hip/device/kernels.hpp"

namespace played {
namespace {

/// The parameters of a kernel, one after the other, each aligned to its size.
class Parameters {
 public:
  explicit Parameters(const PlayedLaunch* launch) : next_(launch->arguments) {}
  template <class T>
  T next() {
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(next_);
    next_ += (sizeof(T) - at % sizeof(T)) % sizeof(T);
    T value;
    std::memcpy(&value, next_, sizeof(T));
    next_ += sizeof(T);
    return value;
  }

 private:
  const char* next_;
};

using Word = std::uint64_t;
struct Four {
  Word x, y, z, w;
};

std::byte* bytesAt(const PlayedLaunch* launch, Word address, Word bytes, bool writes) {
  return static_cast<std::byte*>(launch->at(launch, address, bytes, writes));
}

/// Of the four pointers of a fill, the one that is given; its element has 1, 2, 4 or 8 bytes.
struct Elements {
  Word address = 0;
  Word bytes = 1;
};
Elements nextElements(Parameters& parameters) {
  Elements elements;
  for (const Word bytes : {Word{1}, Word{2}, Word{4}, Word{8}}) {
    const Word address = parameters.next<Word>();
    if (address != 0) elements = {address, bytes};
  }
  return elements;
}

/// The fills and copies of bytes of HIP 6 and 7 have other parameters than HIP 5's.
bool isLaterHip() {
  static const bool is = dlopen("libamdhip64.so.5", RTLD_LAZY | RTLD_NOLOAD) == nullptr;
  return is;
}

/// Up to an end, by a pattern of so many elements.
void fillToEnd(const PlayedLaunch* launch) {
  Parameters parameters(launch);
  const Word to = parameters.next<Word>();
  const Word pattern = parameters.next<Word>();
  const Word elements = parameters.next<std::uint32_t>();
  const Word pattern_bytes = elements * parameters.next<std::uint32_t>();
  const Word bytes = parameters.next<Word>() - to;
  if (bytes == 0) return;
  const std::byte* source = bytesAt(launch, pattern, pattern_bytes, false);
  std::byte* written = bytesAt(launch, to, bytes, true);
  for (Word at = 0; at < bytes; at += pattern_bytes)
    std::memcpy(written + at, source, pattern_bytes);
}

void fill(const PlayedLaunch* launch) {
  if (isLaterHip()) return fillToEnd(launch);
  Parameters parameters(launch);
  const Elements elements = nextElements(parameters);
  const Word pattern = parameters.next<Word>();
  const Word pattern_bytes = parameters.next<std::uint32_t>() * elements.bytes;
  const Word offset = parameters.next<Word>() * elements.bytes;
  const Word times = parameters.next<Word>();
  if (times == 0) return;
  const std::byte* source = bytesAt(launch, pattern, pattern_bytes, false);
  std::byte* to = bytesAt(launch, elements.address + offset, times * pattern_bytes, true);
  for (Word i = 0; i < times; ++i) std::memcpy(to + i * pattern_bytes, source, pattern_bytes);
}

void fillRows(const PlayedLaunch* launch) {
  Parameters parameters(launch);
  const Elements elements = nextElements(parameters);
  const Word pattern = parameters.next<Word>();
  const Word pattern_bytes = parameters.next<std::uint32_t>() * elements.bytes;
  const Word origin = parameters.next<Word>() * elements.bytes;
  const Word width = parameters.next<Word>();
  const Word height = parameters.next<Word>();
  const Word pitch = parameters.next<Word>() * elements.bytes;
  const std::byte* source = bytesAt(launch, pattern, pattern_bytes, false);
  for (Word row = 0; row < height; ++row) {
    std::byte* to = bytesAt(launch, elements.address + origin + row * pitch, width, true);
    for (Word at = 0; at + pattern_bytes <= width; at += pattern_bytes)
      std::memcpy(to + at, source, pattern_bytes);
  }
}

void copyBytes(const PlayedLaunch* launch, Word to, Word from, Word bytes) {
  if (bytes == 0) return;
  std::memmove(bytesAt(launch, to, bytes, true), bytesAt(launch, from, bytes, false), bytes);
}

/// The last of `count` words of four bytes has only `remain`.
void copy(const PlayedLaunch* launch) {
  Parameters parameters(launch);
  const Word from = parameters.next<Word>();
  const Word to = parameters.next<Word>();
  if (isLaterHip()) return copyBytes(launch, to, from, parameters.next<Word>());
  const Word from_offset = parameters.next<Word>();
  const Word to_offset = parameters.next<Word>();
  const Word count = parameters.next<Word>();
  const Word remain = parameters.next<std::uint32_t>();
  copyBytes(launch, to + to_offset, from + from_offset,
            4 * (std::max<Word>(count, 1) - 1) + remain);
}

void copyAligned(const PlayedLaunch* launch) {
  Parameters parameters(launch);
  const Word from = parameters.next<Word>();
  const Word to = parameters.next<Word>();
  const Word from_offset = parameters.next<Word>();
  const Word to_offset = parameters.next<Word>();
  const Word count = parameters.next<Word>();
  const Word unit = parameters.next<std::uint32_t>();
  copyBytes(launch, to + to_offset * unit, from + from_offset * unit, count * unit);
}

/// Rows of `size.x` units. A rectangle is (bytes of a row, bytes of a slice, offset), in units.
void copyRows(const PlayedLaunch* launch, Word unit) {
  Parameters parameters(launch);
  const Word from = parameters.next<Word>();
  const Word to = parameters.next<Word>();
  const auto place = reinterpret_cast<std::uintptr_t>(launch->arguments + 16);
  const char* fours = launch->arguments + 16 + (32 - place % 32) % 32;
  Four source, target, size;
  std::memcpy(&source, fours, sizeof(Four));
  std::memcpy(&target, fours + sizeof(Four), sizeof(Four));
  std::memcpy(&size, fours + 2 * sizeof(Four), sizeof(Four));
  for (Word z = 0; z < size.z; ++z) {
    for (Word y = 0; y < size.y; ++y) {
      const Word read = (source.z + z * source.y + y * source.x) * unit;
      const Word written = (target.z + z * target.y + y * target.x) * unit;
      copyBytes(launch, to + written, from + read, size.x * unit);
    }
  }
}
void copyRect(const PlayedLaunch* launch) { copyRows(launch, 1); }
void copyRectAligned(const PlayedLaunch* launch) { copyRows(launch, 4); }

void writeValue(const PlayedLaunch* launch) {
  Parameters parameters(launch);
  const Word narrow = parameters.next<Word>();
  const Word wide = parameters.next<Word>();
  const Word value = parameters.next<Word>();
  const Word bytes = narrow != 0 ? 4 : 8;
  std::memcpy(bytesAt(launch, narrow != 0 ? narrow : wide, bytes, true), &value, bytes);
}

// The loader's: their parameters are the ends of the phases in which they work.
void copyWords(const PlayedLaunch* launch) {
  Word ends[10];
  std::memcpy(ends, launch->arguments, sizeof(ends));
  copyBytes(launch, ends[1], ends[0], ends[8] - ends[0]);
}
void copySingly(const PlayedLaunch* launch) {
  Word ends[6];
  std::memcpy(ends, launch->arguments, sizeof(ends));
  copyBytes(launch, ends[1], ends[0], ends[4] - ends[0]);
}
void fillWords(const PlayedLaunch* launch) {
  Word ends[3];
  std::memcpy(ends, launch->arguments, sizeof(ends));
  std::uint32_t value = 0;
  std::memcpy(&value, launch->arguments + sizeof(ends), sizeof(value));
  const Word bytes = ends[2] - ends[0];
  if (bytes == 0) return;
  std::byte* to = bytesAt(launch, ends[0], bytes, true);
  for (Word at = 0; at < bytes; at += sizeof(value)) std::memcpy(to + at, &value, sizeof(value));
}

}  // namespace

void addRuntimesKernels() {
  playedKernel("__amd_rocclr_fillBufferAligned", fill, nullptr);
  playedKernel("__amd_rocclr_fillBufferAligned2D", fillRows, nullptr);
  playedKernel("__amd_rocclr_copyBuffer", copy, nullptr);
  playedKernel("__amd_rocclr_copyBufferAligned", copyAligned, nullptr);
  playedKernel("__amd_rocclr_copyBufferRect", copyRect, nullptr);
  playedKernel("__amd_rocclr_copyBufferRectAligned", copyRectAligned, nullptr);
  playedKernel("__amd_rocclr_streamOpsWrite", writeValue, nullptr);
  playedKernel("rocr copy of words", copyWords, nullptr);
  playedKernel("rocr copy of bytes", copySingly, nullptr);
  playedKernel("rocr fill", fillWords, nullptr);
}

}  // namespace played
