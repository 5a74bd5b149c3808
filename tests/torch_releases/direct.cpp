// The verbs of PyTorch's interface that no function of Python's reaches. Each function here returns
// null, or why it failed: static storage, until the thread's next call.
#include <atomic>
#include <cstring>
#include <map>
#include <string>

#include <ATen/core/CachingHostAllocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/version.h>

#define RELEASE (100 * TORCH_VERSION_MAJOR + TORCH_VERSION_MINOR)
#define DIRECT extern "C" __attribute__((visibility("default")))

namespace theirs = c10::cuda::CUDACachingAllocator;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
std::atomic<int> traced{0};
std::atomic<long> rejected{0};

template <class Verb>
const char* run(Verb verb) {
  static thread_local std::string why;
  try {
    verb();
    return nullptr;
  } catch (const std::exception& error) {
    why = error.what();
    return why.c_str();
  }
}

/// Rises in the order in which segments came.
template <class Segment>
std::int64_t orderOf([[maybe_unused]] const Segment& segment) {
  if constexpr (requires { segment.registration_counter; }) return segment.registration_counter;
  return 0;
}

at::HostAllocator& pinned() { return *at::getHostAllocator(at::kCUDA); }

}  // namespace

DIRECT const char* direct_raw() {
  return run([] {
    void* const block = theirs::raw_alloc(3 * kMiB);
    std::size_t bytes = 0;
    void* const base = theirs::getBaseAllocation(static_cast<char*>(block), &bytes);
    TORCH_CHECK(base <= block && bytes >= 3 * kMiB, "a base of ", bytes, " bytes");
    theirs::raw_delete(block);
    TORCH_CHECK(theirs::get()->initialized() && theirs::isEnabled(), "not ready");
  });
}

// ProcessGroupNCCL registers a pool's segments in that order.
DIRECT const char* direct_segments_in_order(unsigned long long first, unsigned long long second) {
  return run([&] {
    const c10::MempoolId_t pool{first, second};
    std::map<std::int64_t, std::size_t> sizes;
    for (const auto& segment : theirs::snapshot(pool).segments)
      sizes[orderOf(segment)] = segment.total_size;
    std::size_t last = 0;
    for (const auto& [order, size] : sizes) {
      TORCH_CHECK(order >= 0 && size > last, "order ", order, " has ", size, " bytes, after ",
                  last);
      last = size;
    }
    TORCH_CHECK(RELEASE < 211 || sizes.size() == 3, sizes.size(), " segments");
  });
}

DIRECT const char* direct_cache_info(std::size_t* largest) {
  return run([&] { theirs::cacheInfo(0, largest); });
}

/// The number of entries of the trace that trackers were told since the first call.
DIRECT const char* direct_traced(int* count) {
  return run([&] {
    static const bool attached =
        (theirs::attachAllocatorTraceTracker([](const theirs::TraceEntry&) { ++traced; }), true);
    (void)attached;
    *count = traced;
  });
}

/// A tracker reads a byte of each range that it hears of, also of one that is about to go.
DIRECT const char* direct_trackers_read_memory() {
  return run([] {
    static std::atomic<int> came{0}, went{0}, unread{0};
    static std::atomic<bool> reads{true};  // a tracker stays, and a copy would end a capture
    theirs::attachAllocatorTraceTracker([](const theirs::TraceEntry& entry) {
      using Action = theirs::TraceEntry::Action;
      const bool comes =
          entry.action_ == Action::SEGMENT_ALLOC || entry.action_ == Action::SEGMENT_MAP;
      const bool goes =
          entry.action_ == Action::SEGMENT_FREE || entry.action_ == Action::SEGMENT_UNMAP;
      if (!reads || (!comes && !goes)) return;
      char byte = 0;
      const void* const there = reinterpret_cast<const void*>(entry.addr_);
      unread += cudaMemcpy(&byte, there, 1, cudaMemcpyDeviceToHost) != cudaSuccess;
      (comes ? came : went) += int(entry.size_ >> 20);
    });
    { const c10::DataPtr block = theirs::get()->allocate(64 * kMiB); }
    theirs::emptyCache();
    reads = false;
    TORCH_CHECK(came >= 64, "of memory that comes ", came.load(), " MiB were told");
    TORCH_CHECK(went >= 64, "of memory that goes ", went.load(), " MiB were told");
    TORCH_CHECK(unread == 0, unread.load(), " ranges could not be read");
  });
}

DIRECT const char* direct_record_stream() {
  return run([] {
    const c10::DataPtr block = theirs::get()->allocate(kMiB);
    const c10::cuda::CUDAStream side = c10::cuda::getStreamFromPool();
    auto* const device = static_cast<c10::DeviceAllocator*>(theirs::get());
    device->recordStream(block, side.unwrap());
  });
}

DIRECT const char* direct_peer_access() {
  return run([] { theirs::enablePeerAccess(0, 1); });
}

DIRECT const char* direct_copy_data() {
  return run([] {
    const c10::DataPtr from = theirs::get()->allocate(kMiB);
    const c10::DataPtr copy = theirs::get()->clone(from.get(), kMiB);
    TORCH_CHECK(copy.get() != nullptr && copy.get() != from.get(), "no clone");
    void* const again = theirs::get()->raw_allocate(kMiB);  // through raw_deleter
    theirs::get()->raw_deallocate(again);
  });
}

#if RELEASE >= 210
DIRECT const char* direct_expandable_segments(std::size_t* count) {
  return run([&] { *count = theirs::getExpandableSegmentSizes(0).size(); });
}
#endif
#if RELEASE >= 212
/// The bytes of the last rejected request.
DIRECT const char* direct_rejected(long* bytes) {
  return run([&] {
    static const bool attached =
        (theirs::attachOomRejectionObserver(
             [](auto, std::size_t asked, auto, auto) { rejected = long(asked); }),
         true);
    (void)attached;
    *bytes = rejected;
  });
}
#endif
#if RELEASE >= 213
DIRECT const char* direct_with_address() {
  return run([] { (void)theirs::allocateWithAddress(kMiB, nullptr); });
}
#endif

DIRECT const char* direct_pinned() {
  return run([] {
    const c10::DataPtr from = pinned().allocate(4096);
    std::memset(from.get(), 7, 4096);
    const c10::DataPtr copy = pinned().clone(from.get(), 4096);
    TORCH_CHECK(std::memcmp(copy.get(), from.get(), 4096) == 0, "another content");
    const c10::cuda::CUDAStream side = c10::cuda::getStreamFromPool();
    TORCH_CHECK(pinned().record_event(from.get(), from.get_context(), side.unwrap()), "not known");
    int other = 0;
    TORCH_CHECK(!pinned().record_event(&other, nullptr, side.unwrap()), "known");
    void* const again = pinned().raw_allocate(4096);
    pinned().raw_deallocate(again);
  });
}
#if RELEASE >= 211
DIRECT const char* direct_pinned_pool() {
  return run([] {
    const c10::MempoolId_t pool{0, 1u << 30};
    pinned().begin_allocate_to_pool(pool, [](c10::Stream) { return true; });
    (void)pinned().allocate(4096);
    pinned().end_allocate_to_pool(pool);
    pinned().release_pool(pool);
  });
}
#endif
