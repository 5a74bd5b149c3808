// The device's streams, for programs that call no runtime of their own.
#include "interop/c/objects.hpp"

using namespace cistern;
using namespace cistern::capi;

cistern_status_t cistern_stream_create(cistern_allocator_t allocator, void** stream) {
  return guarded([&] {
    requireGiven(stream, "stream");
    const Use<AllocatorObject> use(wordOf(allocator));
    *stream = toPointer(use->allocator->device().createStream().orThrow().raw);
  });
}

cistern_status_t cistern_stream_destroy(cistern_allocator_t allocator, void* stream) {
  return guarded([&] {
    const Use<AllocatorObject> use(wordOf(allocator));
    use->allocator->forgetStream(streamOf(stream));
    use->pinned->forgetStream(streamOf(stream));
    use->allocator->device().destroyStream(streamOf(stream)).orThrow();
  });
}

cistern_status_t cistern_stream_synchronize(cistern_allocator_t allocator, void* stream) {
  return guarded([&] {
    const Use<AllocatorObject> use(wordOf(allocator));
    use->allocator->device().synchronizeStream(streamOf(stream)).orThrow();
  });
}

// Relaxed: then any thread may end it.
cistern_status_t cistern_stream_begin_capture(cistern_allocator_t allocator, void* stream) {
  return guarded([&] {
    const Use<AllocatorObject> use(wordOf(allocator));
    use->allocator->device().beginCapture(streamOf(stream), CaptureMode::kRelaxed).orThrow();
  });
}

cistern_status_t cistern_stream_end_capture(cistern_allocator_t allocator, void* stream) {
  return guarded([&] {
    const Use<AllocatorObject> use(wordOf(allocator));
    Device& device = use->allocator->device();
    device.destroyGraph(device.endCapture(streamOf(stream)).orThrow()).orThrow();
  });
}
