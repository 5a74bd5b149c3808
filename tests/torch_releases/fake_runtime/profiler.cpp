// The library by which PyTorch's profiler follows a GPU (CUPTI). The real one recurses without end
// where a driver answers that a function is not there. This one sees nothing.
#include "fake_runtime.hpp"

namespace {

constexpr int kNoMoreRecords = 12;  // CUPTI_ERROR_MAX_LIMIT_REACHED

}  // namespace

#define SUCCEEDS(name) \
  FAKE_API int name() { return 0; }
SUCCEEDS(cuptiActivityDisable)
SUCCEEDS(cuptiActivityEnable)
SUCCEEDS(cuptiActivityEnableCudaEventDeviceTimestamps)
SUCCEEDS(cuptiActivityEnableDriverApi)
SUCCEEDS(cuptiActivityEnableRuntimeApi)
SUCCEEDS(cuptiActivityFlushAll)
SUCCEEDS(cuptiActivityPopExternalCorrelationId)
SUCCEEDS(cuptiActivityPushExternalCorrelationId)
SUCCEEDS(cuptiActivityRegisterCallbacks)
SUCCEEDS(cuptiActivityRegisterTimestampCallback)
SUCCEEDS(cuptiActivitySetAttribute)
SUCCEEDS(cuptiEnableCallback)
SUCCEEDS(cuptiEnableDomain)
SUCCEEDS(cuptiFinalize)
SUCCEEDS(cuptiUnsubscribe)

FAKE_API int cuptiSubscribe(void** subscriber, void*, void*) {
  *subscriber = nullptr;
  return 0;
}
FAKE_API int cuptiGetVersion(unsigned* version) {
  *version = 18;
  return 0;
}
FAKE_API int cuptiActivityGetNumDroppedRecords(void*, unsigned, std::size_t* dropped) {
  *dropped = 0;
  return 0;
}
FAKE_API int cuptiActivityGetNextRecord(unsigned char*, std::size_t, void**) {
  return kNoMoreRecords;
}
FAKE_API int cuptiGetResultString(int, const char** text) {
  *text = "an answer of the simulated profiler";
  return 0;
}
FAKE_API int cuptiGetCallbackName(int, unsigned, const char** text) {
  *text = "a call";
  return 0;
}
