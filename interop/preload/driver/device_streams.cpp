// Streams, events and captures of a context's device. See driver_device.hpp for stream 0.
#include "allocator/device/vendor/error_kind.hpp"
#include "interop/preload/driver/driver_device.hpp"

namespace cistern::preload {
namespace {

CUstream handleOf(Stream stream) { return reinterpret_cast<CUstream>(stream.raw); }
CUevent handleOf(Event event) { return reinterpret_cast<CUevent>(event.raw); }

// What the engine never asks of a device that serves a program: the program has made its streams,
// its graphs and its copies itself.
DeviceError notForUs(Call call) {
  return {call, ErrorKind::kNotSupported, CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", {}};
}

}  // namespace

Result<bool> DriverDevice::readiness(Call call, CUresult result) const {
  if (result == CUDA_SUCCESS) return true;
  if (result == CUDA_ERROR_NOT_READY) return false;
  return failure(call, result);
}

// ---- Streams ------------------------------------------------------------------------------------

Result<bool> DriverDevice::doQueryStream(Stream stream) {
  if (gone_ || (stream == Stream{} && isComplete())) return true;
  return readiness(Call::kQueryStream,
                   onStream(stream, [&](CUstream asked) { return driver_.cuStreamQuery(asked); }));
}

Status DriverDevice::doSynchronizeStream(Stream stream) {
  if (gone_ || (stream == Stream{} && isComplete())) return {};
  const auto wait = [&](CUstream on) { return driver_.cuStreamSynchronize(on); };
  return outcome(Call::kSynchronizeStream, onStream(stream, wait));
}

// The hub is brought up first: what is asked of stream 0 afterwards is complete then.
Status DriverDevice::doSynchronizeDevice() {
  if (gone_) return {};
  CUstream hub = nullptr;
  if (!isComplete()) (void)order_.reach(hub);
  const ContextOrder::Waiting since = order_.waiting();
  const CUresult result = inContext([&] { return driver_.cuCtxSynchronize(); });
  if (result == CUDA_SUCCESS) order_.waited(since, nullptr);
  return outcome(Call::kSynchronizeDevice, result);
}

// For stream 0 with the hub, which comes after all that was submitted before the last cudaFree.
template <class Call>
CUresult DriverDevice::onStream(Stream stream, Call call) {
  CUstream on = handleOf(stream);
  if (stream == Stream{}) {
    if (const CUresult result = order_.reach(on); result != CUDA_SUCCESS) return result;
  }
  return inContext([&] { return call(on); });
}

Status DriverDevice::doWaitEvent(Stream stream, Event event) {
  if (gone_) return {};
  if (stream != Stream{}) {
    return outcome(Call::kWaitEvent, inContext([&] {
                     return driver_.cuStreamWaitEvent(handleOf(stream), handleOf(event), 0);
                   }));
  }
  if (isComplete()) return doSynchronizeEvent(event);
  return outcome(Call::kWaitEvent, order_.allAfter(handleOf(event)));
}

// ---- Events -------------------------------------------------------------------------------------

Result<Event> DriverDevice::doCreateEvent() {
  CUevent event = nullptr;
  const CUresult result =
      inContext([&] { return driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING); });
  return outcome(Call::kCreateEvent, result, Event{reinterpret_cast<std::uintptr_t>(event)});
}

Status DriverDevice::doDestroyEvent(Event event) {
  if (gone_) return {};
  return outcome(Call::kDestroyEvent,
                 inContext([&] { return driver_.cuEventDestroy_v2(handleOf(event)); }));
}

Status DriverDevice::doRecordEvent(Event event, Stream stream) {
  if (gone_ || (stream == Stream{} && isComplete())) return {};
  const auto record = [&](CUstream on) { return driver_.cuEventRecord(handleOf(event), on); };
  return outcome(Call::kRecordEvent, onStream(stream, record));
}

Result<bool> DriverDevice::doQueryEvent(Event event) {
  if (gone_) return true;
  return readiness(Call::kQueryEvent,
                   inContext([&] { return driver_.cuEventQuery(handleOf(event)); }));
}

Status DriverDevice::doSynchronizeEvent(Event event) {
  if (gone_) return {};
  return outcome(Call::kSynchronizeEvent,
                 inContext([&] { return driver_.cuEventSynchronize(handleOf(event)); }));
}

// ---- Captures -----------------------------------------------------------------------------------

// Stream 0 is captured as soon as any stream is: what is freed then is in no order yet. No
// capture has an id that anybody asks for: graphs' memory is the driver's.
Result<CaptureInfo> DriverDevice::doCaptureInfo(Stream stream) {
  if (gone_) return CaptureInfo{};
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = CUDA_SUCCESS;
  if (stream != Stream{}) {
    result = inContext([&] { return driver_.cuStreamIsCapturing(handleOf(stream), &status); });
    if (result ==
        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) {  // the legacy stream, which cannot be itself
      status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
      result = CUDA_SUCCESS;
    }
  } else if (captures_.maybe()) {
    const std::lock_guard lock(captures_.beginning());
    if (order_.capturing()) status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  }
  if (status == CU_STREAM_CAPTURE_STATUS_NONE)
    return outcome(Call::kCaptureInfo, result, CaptureInfo{});
  const bool active = status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return outcome(Call::kCaptureInfo, result,
                 CaptureInfo{active ? CaptureStatus::kActive : CaptureStatus::kInvalidated, 1});
}

Result<CaptureMode> DriverDevice::doExchangeCaptureMode(CaptureMode mode) {
  static_assert(CU_STREAM_CAPTURE_MODE_GLOBAL == int(CaptureMode::kGlobal) &&
                CU_STREAM_CAPTURE_MODE_THREAD_LOCAL == int(CaptureMode::kThreadLocal) &&
                CU_STREAM_CAPTURE_MODE_RELAXED == int(CaptureMode::kRelaxed));
  auto exchanged = CUstreamCaptureMode(mode);
  const CUresult result = driver_.cuThreadExchangeStreamCaptureMode(&exchanged);
  return outcome(Call::kExchangeCaptureMode, result, CaptureMode(exchanged));
}

// ---- What the engine does not ask for -----------------------------------------------------------

Result<Stream> DriverDevice::doCreateStream() { return notForUs(Call::kCreateStream); }
Status DriverDevice::doDestroyStream(Stream) { return notForUs(Call::kDestroyStream); }
Result<CaptureInfo> DriverDevice::doCaptureFrontier(Stream, std::vector<GraphNode>&) {
  return notForUs(Call::kCaptureFrontier);
}
Status DriverDevice::doNodeDependencies(GraphNode, std::vector<GraphNode>&) {
  return notForUs(Call::kNodeDependencies);
}
Status DriverDevice::doBeginCapture(Stream, CaptureMode) { return notForUs(Call::kBeginCapture); }
Result<DeviceGraph> DriverDevice::doEndCapture(Stream) { return notForUs(Call::kEndCapture); }
Result<DeviceGraphExec> DriverDevice::doInstantiate(DeviceGraph) {
  return notForUs(Call::kInstantiate);
}
Status DriverDevice::doLaunchGraph(DeviceGraphExec, Stream) { return notForUs(Call::kLaunchGraph); }
Status DriverDevice::doDestroyGraph(DeviceGraph) { return notForUs(Call::kDestroyGraph); }
Status DriverDevice::doDestroyGraphExec(DeviceGraphExec) {
  return notForUs(Call::kDestroyGraphExec);
}
Status DriverDevice::doDumpGraph(DeviceGraph, const std::string&) {
  return notForUs(Call::kDumpGraph);
}
Status DriverDevice::doCopy(Address, Address, std::size_t, Stream) { return notForUs(Call::kCopy); }
Result<void*> DriverDevice::doHostMalloc(std::size_t) { return notForUs(Call::kHostMalloc); }
Status DriverDevice::doHostFree(void*) { return notForUs(Call::kHostFree); }
Result<Address> DriverDevice::doMallocAsync(std::size_t, Stream) {
  return notForUs(Call::kMallocAsync);
}
Status DriverDevice::doFreeAsync(Address, Stream) { return notForUs(Call::kFreeAsync); }
Result<DriverPoolInfo> DriverDevice::doDriverPool(bool) { return notForUs(Call::kDriverPool); }

}  // namespace cistern::preload
