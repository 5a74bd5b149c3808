// Streams that the program makes, waits for and destroys, and captures that it begins. The order of
// a context rests on them (driver/context_order.hpp). The hooks of both vendors call this.
#pragma once

#include "interop/preload/hooks/hook_entry.hpp"

namespace cistern::preload::GPU_NAMESPACE {

/// Calls the driver, which makes a stream, and notes the stream.
template <class Function, class... Arguments>
Code createStream(Function FunctionTable::*function, StreamHandle* stream, Arguments... arguments) {
  const Entry entry;
  const Code result = entry.pass(function, stream, arguments...);
  if (result != kSuccess || !entry.serves()) return result;
  if (Context* const context = contexts().current()) context->order().created(*stream);
  return result;
}

/// A stream is about to be destroyed: the allocator asks nothing of it any more.
inline void destroying(const Entry& entry, StreamHandle stream) {
  if (!entry.serves() || stream == nullptr || stream == kLegacyStream || stream == kPerThreadStream)
    return;
  contexts().destroying(stream, [&](Context& context) {
    Serving* const serving = context.serving();
    if (serving == nullptr) return;
    try {
      serving->allocator.forgetStream(Stream(stream));
    } catch (const std::exception&) {
      // It is being captured: to destroy it breaks the capture anyway.
    }
  });
}

/// The program waits for the device where memory is used again when it is complete: that is all
/// that was submitted so far.
template <class Wait>
Code waitForAll(const Entry& entry, Wait wait) {
  Context* const context = entry.serves() ? contexts().current() : nullptr;
  const auto work = context == nullptr ? std::nullopt : ContextOrder::workSoFar();
  const Code result = wait();
  if (result == kSuccess && work && context->serving() != nullptr)
    context->serving()->cooling.waited(*work);
  return result;
}

/// The program waits, for a stream or for the device (null): `wait` calls the driver. The work that
/// it has waited for no longer needs an order.
template <class Wait>
Code waitFor(const Entry& entry, const StreamHandle* stream, Wait wait) {
  ContextOrder* const order = entry.serves() ? ContextOrder::followed() : nullptr;
  if (order == nullptr && stream == nullptr) return waitForAll(entry, wait);
  ContextHandle now = kNoContext;
  if (order == nullptr || driver()->currentContext(&now) != kSuccess || now != order->context() ||
      (stream != nullptr && *stream == kPerThreadStream)) {
    return wait();
  }
  const ContextOrder::Waiting since = order->waiting();
  const Code result = wait();
  if (result == kSuccess) order->waited(since, stream);
  return result;
}
/// The program waits for the device, by this function.
template <class Function>
Code waitForDevice(Function FunctionTable::*function) {
  const Entry entry;
  return waitFor(entry, nullptr, [&] { return entry.pass(function); });
}
/// The same for a stream as a function is called with it, by its spelling.
template <class Function>
Code waitForStream(Function FunctionTable::*function, StreamHandle stream, bool per_thread) {
  const Entry entry;
  const StreamHandle meant = streamMeant(stream, per_thread);
  return waitFor(entry, &meant, [&] { return entry.pass(function, stream); });
}

/// Calls the driver. First puts into the streams everything that must be in order before the
/// capture.
template <class Function, class... Arguments>
Code beginCapture(Function FunctionTable::*function, Arguments... arguments) {
  const Entry entry;
  return contexts().captures().begin([&] {
    if (ContextOrder* const order = ContextOrder::followed()) order->beforeCapture();
    return entry.pass(function, arguments...);
  });
}
template <class Function, class... Arguments>
Code endCapture(Function FunctionTable::*function, Arguments... arguments) {
  const Entry entry;
  const Code result = entry.pass(function, arguments...);
  contexts().captures().ended(result);
  return result;
}

}  // namespace cistern::preload::GPU_NAMESPACE
