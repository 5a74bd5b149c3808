// Streams and events.
#include <mutex>
#include <unordered_map>

#include "fake_runtime.hpp"

namespace fake {
namespace {

std::mutex streams_mutex;
std::unordered_map<cudaStream_t, int> streams;  ///< under streams_mutex: the device of each

cudaStream_t handleOf(cistern::Stream stream) { return reinterpret_cast<cudaStream_t>(stream.raw); }

cudaError_t create(cudaStream_t* stream) {
  const auto made = current().createStream();
  if (!made.ok()) return answer(made.error());
  *stream = handleOf(made.value());
  const std::lock_guard lock(streams_mutex);
  streams[*stream] = currentOrdinal();
  return cudaSuccess;
}

/// Behind a cudaEvent_t.
struct Event {
  cistern::sim::SimulatedDevice& device;
  cistern::Event handle;
};
Event& eventOf(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }

}  // namespace

cistern::Stream streamOf(cudaStream_t stream) { return cistern::Stream(stream); }

cistern::sim::SimulatedDevice& deviceOf(cudaStream_t stream) {
  const std::lock_guard lock(streams_mutex);
  const auto found = streams.find(stream);
  return device(found != streams.end() ? found->second : currentOrdinal());
}

cudaError_t launch(cudaStream_t stream, const char* name) {
  cistern::sim::Work work;
  work.name = name;
  return answer(deviceOf(stream).launch(streamOf(stream), std::move(work)));
}

}  // namespace fake

FAKE_API cudaError_t cudaStreamCreate(cudaStream_t* stream) { return fake::create(stream); }
FAKE_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return fake::create(stream);
}
FAKE_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  return fake::create(stream);
}
FAKE_API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const auto destroyed = fake::deviceOf(stream).destroyStream(fake::streamOf(stream));
  const std::lock_guard lock(fake::streams_mutex);
  fake::streams.erase(stream);
  return fake::answer(destroyed);
}
FAKE_API cudaError_t cudaStreamGetPriority(cudaStream_t, int* priority) {
  *priority = 0;
  return cudaSuccess;
}
FAKE_API cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
FAKE_API cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return fake::answer(fake::deviceOf(stream).queryStream(fake::streamOf(stream)));
}
FAKE_API cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return fake::answer(fake::deviceOf(stream).synchronizeStream(fake::streamOf(stream)));
}
/// An event of another device is waited for by the host.
FAKE_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  fake::Event& of = fake::eventOf(event);
  cistern::Device& device = fake::deviceOf(stream);
  if (&device != &of.device) return fake::answer(of.device.synchronizeEvent(of.handle));
  return fake::answer(device.waitEvent(fake::streamOf(stream), of.handle));
}
FAKE_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  cistern::sim::Work work;
  work.name = "host function";
  work.effect = [function, data](cistern::sim::MemoryView&) { function(data); };
  return fake::answer(fake::deviceOf(stream).launch(fake::streamOf(stream), std::move(work)));
}

// ---- Events -------------------------------------------------------------------------------------

FAKE_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  cistern::sim::SimulatedDevice& device = fake::current();
  const auto made = device.createEvent();
  if (!made.ok()) return fake::answer(made.error());
  *event = reinterpret_cast<cudaEvent_t>(new fake::Event{device, made.value()});
  return cudaSuccess;
}
FAKE_API cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, 0);
}
FAKE_API cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const fake::Event of = fake::eventOf(event);
  delete &fake::eventOf(event);
  return fake::answer(of.device.destroyEvent(of.handle));
}
FAKE_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  fake::Event& of = fake::eventOf(event);
  return fake::answer(of.device.recordEvent(of.handle, fake::streamOf(stream)));
}
FAKE_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
FAKE_API cudaError_t cudaEventQuery(cudaEvent_t event) {
  return fake::answer(fake::eventOf(event).device.queryEvent(fake::eventOf(event).handle));
}
FAKE_API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return fake::answer(fake::eventOf(event).device.synchronizeEvent(fake::eventOf(event).handle));
}
FAKE_API cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 0;
  return cudaSuccess;
}
FAKE_API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t) {
  *handle = {};
  return cudaSuccess;
}
/// An event that was never recorded, which is complete.
FAKE_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t) {
  return cudaEventCreate(event);
}
