// The memory of graphs that the program captures itself.
#include "interop/c/c_calls.hpp"

using namespace cistern;
using namespace cistern::capi;

namespace cistern::capi {
namespace {

// The pool's name while its handle is held: it is of the same allocator then, and there.
void beginIn(CaptureObject& capture, AllocatorObject& allocator, Stream stream,
             cistern_pool_t pool) {
  const MutexLock lock(capture.mutex);
  if (pool == nullptr) return capture.memory.captureBegin(stream);
  const Use<PoolObject> use(wordOf(pool));
  if (&use->child.parent() != &allocator)
    throw Failure(CISTERN_INVALID_ARGUMENT, "the pool is another allocator's");
  capture.memory.captureBegin(stream, use->pool.id());
}

/// Calls call(GraphMemory&), one thread after the other.
template <class Call>
cistern_status_t onCapture(cistern_capture_t capture, Call call) noexcept {
  return guarded([&] {
    const Use<CaptureObject> use(wordOf(capture));
    const MutexLock lock(use->mutex);
    call(use->memory);
  });
}

}  // namespace
}  // namespace cistern::capi

cistern_status_t cistern_capture_begin(cistern_allocator_t allocator, void* stream,
                                       cistern_pool_t pool, cistern_capture_t* out) {
  return guarded([&] {
    requireGiven(out, "out");
    const Use<AllocatorObject> use(wordOf(allocator));
    auto capture = std::make_unique<CaptureObject>(*use);
    beginIn(*capture, *use, streamOf(stream), pool);
    *out = handleOf<cistern_capture_t>(HandleTable<CaptureObject>::add(std::move(capture)));
  });
}

cistern_status_t cistern_capture_include_stream(cistern_capture_t capture, void* stream) {
  return onCapture(capture, [&](GraphMemory& memory) { memory.includeStream(streamOf(stream)); });
}

cistern_status_t cistern_capture_end(cistern_capture_t capture) {
  return onCapture(capture, [](GraphMemory& memory) { memory.captureEnd(); });
}

cistern_status_t cistern_capture_launching(cistern_capture_t capture, void* stream) {
  return onCapture(capture, [&](GraphMemory& memory) { memory.launching(streamOf(stream)); });
}

cistern_status_t cistern_capture_launched(cistern_capture_t capture) {
  return onCapture(capture, [](GraphMemory& memory) { memory.launched(); });
}

cistern_status_t cistern_capture_idle(cistern_capture_t capture, int* idle) {
  return onCapture(capture, [&](GraphMemory& memory) {
    requireGiven(idle, "idle");
    *idle = memory.idle() ? 1 : 0;
  });
}

cistern_status_t cistern_capture_pool_id(cistern_capture_t capture, cistern_pool_id_t* id) {
  return onCapture(capture, [&](GraphMemory& memory) {
    requireGiven(id, "id");
    const MempoolId_t pool = memory.pool();
    *id = {pool.uuid, pool.uid};
  });
}

// Works in every state, so there is nothing to check before, and one of several threads does it.
cistern_status_t cistern_capture_release(cistern_capture_t capture) {
  return release<CaptureObject>(wordOf(capture));
}

// The device's streams, for programs that call no runtime of their own.

cistern_status_t cistern_stream_create(cistern_allocator_t allocator, void** stream) {
  return read(allocator, stream, "stream", [&](auto& of) {
    return toPointer(of.allocator->device().createStream().orThrow().raw);
  });
}

cistern_status_t cistern_stream_destroy(cistern_allocator_t allocator, void* stream) {
  return on(allocator, [&](auto& of) {
    of.allocator->forgetStream(streamOf(stream));
    of.pinned->forgetStream(streamOf(stream));
    of.allocator->device().destroyStream(streamOf(stream)).orThrow();
  });
}

cistern_status_t cistern_stream_synchronize(cistern_allocator_t allocator, void* stream) {
  return on(allocator, [&](auto& of) {
    of.allocator->device().synchronizeStream(streamOf(stream)).orThrow();
  });
}

// Relaxed: then any thread may end it.
cistern_status_t cistern_stream_begin_capture(cistern_allocator_t allocator, void* stream) {
  return on(allocator, [&](auto& of) {
    of.allocator->device().beginCapture(streamOf(stream), CaptureMode::kRelaxed).orThrow();
  });
}

cistern_status_t cistern_stream_end_capture(cistern_allocator_t allocator, void* stream) {
  return on(allocator, [&](auto& of) {
    Device& device = of.allocator->device();
    device.destroyGraph(device.endCapture(streamOf(stream)).orThrow()).orThrow();
  });
}
