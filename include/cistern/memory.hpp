// One allocator for each device, shared by the whole process. It is for programs that want
// cudaMalloc's two calls and nothing to carry around:
//
//   void* tensor = cistern::allocate(bytes, stream);
//   cistern::free(tensor);
//
// The first call for a device opens it ("auto": CUDA, else HIP, else a simulated one) and makes its
// allocator, with the options of CISTERN_CONF. It stays until the process ends. The driver takes
// back what is allocated then. Static objects may free into it to the very end.
//
// Below that, memory that frees itself: DeviceBuffer, makeUnique.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cistern/allocator.hpp"
#include "cistern/current.hpp"
#include "cistern/pinned.hpp"
#include "cistern/pool.hpp"

namespace cistern {

/// The device's allocator. Thread-safe; the reference stays valid. Throws InvalidArgument for an
/// ordinal out of range, and what openDevice and CachingAllocator throw; the next call tries again.
CISTERN_API CachingAllocator& allocator(int device = currentDevice());

/// Its pools, made at the first call. As allocator().
CISTERN_API Pools& pools(int device = currentDevice());

/// Pinned host memory for copies on its streams. As allocator().
CISTERN_API PinnedAllocator& pinnedAllocator(int device = currentDevice());

/// CachingAllocator::allocate on the calling thread's current device: the one that cudaSetDevice,
/// or a DeviceGuard, has set. Throws what that and allocator() throw.
[[nodiscard]] CISTERN_API void* allocate(std::size_t bytes, Stream stream);
/// At a multiple of `alignment`: CachingAllocator::allocate with one.
[[nodiscard]] CISTERN_API void* allocate(std::size_t bytes, Stream stream, std::size_t alignment);
/// On the thread's current stream there.
[[nodiscard]] CISTERN_API void* allocate(std::size_t bytes);

/// Takes back a block of any device's shared allocator, whichever device is current. A pointer of
/// no such allocator is reported as CachingAllocator::free does.
CISTERN_API void free(void* pointer) noexcept;

/// CachingAllocator::recordStream for a block of any device's shared allocator.
CISTERN_API void recordStream(void* pointer, Stream stream);

/// CachingAllocator::mark for the shared allocator of each device that has one.
CISTERN_API void mark(std::string_view name);

// ---- Memory that frees itself ------------------------------------------------------------------

namespace detail {

/// Throws std::bad_alloc, as status.hpp's throwFailure does.
[[noreturn]] CISTERN_API void throwTooMany();

/// The bytes of `count` objects. Throws std::bad_alloc if std::size_t cannot hold that number.
template <class T>
std::size_t bytesOf(std::size_t count) {
  if (count > (std::numeric_limits<std::size_t>::max)() / sizeof(T)) throwTooMany();
  return count * sizeof(T);
}

}  // namespace detail

/// `size()` objects of type T in device memory, for use on one stream. The host never looks at
/// them. Freed in that stream's order when the buffer is destroyed: queued work may still use it
/// then. Not thread-safe, like a std::vector.
///
///   data() == nullptr  <=>  size() == 0        bytes() == size() * sizeof(T)
template <class T>
class DeviceBuffer {
  static_assert(std::is_trivially_copyable<T>::value, "nothing is constructed on the device");

 public:
  DeviceBuffer() noexcept = default;
  /// From the shared allocator of the current device. Throws what allocate does. Contents are
  /// indeterminate.
  explicit DeviceBuffer(std::size_t count, Stream stream = currentStream())
      : DeviceBuffer(count, stream, allocator()) {}
  /// From an allocator that outlives the buffer.
  DeviceBuffer(std::size_t count, Stream stream, CachingAllocator& from)
      : allocator_(&from), stream_(stream) {
    data_ = static_cast<T*>(from.allocate(detail::bytesOf<T>(count), stream));
    size_ = count;
  }
  ~DeviceBuffer() { reset(); }
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    DeviceBuffer(std::move(other)).swap(*this);
    return *this;
  }

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return size_ * sizeof(T); }
  bool empty() const noexcept { return size_ == 0; }
  Stream stream() const noexcept { return stream_; }

  /// Changes size(). The first min(before, after) objects stay, and are copied, on the buffer's
  /// stream, only where they do not fit in place. Throws what allocate does, or DeviceFailure where
  /// the device refuses the copy; then nothing has changed. Pre: not default-constructed, unless
  /// count is 0.
  void resize(std::size_t count) { resizeKeeping(count, size_ < count ? size_ : count); }
  /// Changes size() and copies nothing: all contents are indeterminate. For contents that the
  /// program no longer needs. Throws what allocate does. Pre: as resize's.
  void resizeWithoutCopy(std::size_t count) { resizeKeeping(count, 0); }

  /// Declares that `stream` also uses the memory: CachingAllocator::recordStream.
  void record(Stream stream) {
    if (data_ != nullptr) allocator_->recordStream(data_, stream);
  }
  /// Hands the memory to the caller, who frees it by the allocator that it came from. Post:
  /// empty().
  [[nodiscard]] T* release() noexcept {
    size_ = 0;
    return std::exchange(data_, nullptr);
  }
  /// Frees the memory. Post: empty().
  void reset() noexcept {
    if (data_ != nullptr) allocator_->free(release());
  }
  void swap(DeviceBuffer& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(stream_, other.stream_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

 private:
  bool fits(std::size_t count) const {
    return data_ != nullptr && detail::bytesOf<T>(count) <= allocator_->blockSize(data_);
  }
  void resizeKeeping(std::size_t count, std::size_t kept) {
    if (count == 0) return reset();
    if (!fits(count)) {
      DeviceBuffer larger(count, stream_, *allocator_);
      if (kept != 0) {
        allocator_->device()
            .copy(toAddress(larger.data_), toAddress(data_), kept * sizeof(T), stream_)
            .orThrow();
      }
      larger.swap(*this);
    }
    size_ = count;
  }

  CachingAllocator* allocator_ = nullptr;
  Stream stream_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Frees through the shared allocators.
struct DeviceDelete {
  void operator()(void* pointer) const noexcept { cistern::free(pointer); }
};

/// A pointer that frees its device memory in the order of the stream that it was allocated for.
template <class T>
using UniqueDevicePtr = std::unique_ptr<T, DeviceDelete>;

/// One T in device memory, or `count` of them (makeUnique<T[]>), from the shared allocator of the
/// current device. Throws what allocate does. Contents are indeterminate.
template <class T, std::enable_if_t<!std::is_array<T>::value, int> = 0>
UniqueDevicePtr<T> makeUnique(Stream stream = currentStream()) {
  static_assert(std::is_trivially_copyable<T>::value, "nothing is constructed on the device");
  return UniqueDevicePtr<T>(static_cast<T*>(allocate(sizeof(T), stream)));
}
template <class T, std::enable_if_t<std::is_array<T>::value, int> = 0>
UniqueDevicePtr<T> makeUnique(std::size_t count, Stream stream = currentStream()) {
  using Element = std::remove_extent_t<T>;
  static_assert(std::is_trivially_copyable<Element>::value, "nothing is constructed on the device");
  return UniqueDevicePtr<T>(
      static_cast<Element*>(allocate(detail::bytesOf<Element>(count), stream)));
}

}  // namespace cistern
