// Streams, cuts and work: see context_order.hpp.
#include "interop/preload/driver/context_order.hpp"

#include <algorithm>

namespace cistern::preload::GPU_NAMESPACE {

// Every stream that may have work: the known ones, and the hub with the work that it has taken
// over.
template <class Visit>
void ContextOrder::forEach(Visit visit) noexcept {
  visit(legacy_);
  for (Known& known : made_) visit(known);
  if (hub_.worked_at != 0) visit(hub_);
}

template <class Call>
Code ContextOrder::inContext(Call call) noexcept {
  return driver_.inContext(context_, call);
}

// If the order cannot be had on the device, the host waits, and the order holds. If that fails too,
// the context is broken, and nothing runs in it any more.
template <class Call>
void ContextOrder::orWait(Call call) noexcept {
  (void)inContext([&] {
    if (call() != kSuccess) {
      ++epoch_;
      (void)driver_.synchronizeContext();
      closed();
    }
    return kSuccess;
  });
}

ContextOrder::~ContextOrder() {
  ContextOrder* self = this;
  followed_.compare_exchange_strong(self, nullptr);
}

void ContextOrder::unfollow() noexcept {
  const MutexLock lock(captures_.beginning());
  if (!isFollowed()) return;
  open();
  orWait([&] {
    const Code result = close();
    return result == kSuccess ? catchUpAll() : result;
  });
  followed_ = nullptr;
}

// ---- The program's streams ----------------------------------------------------------------------

ContextOrder::Known* ContextOrder::find(StreamHandle stream) noexcept {
  if (stream == kLegacyStream || stream == kPerThreadStream) return &legacy_;
  const auto found = std::find_if(made_.begin(), made_.end(),
                                  [&](const Known& known) { return known.stream == stream; });
  return found == made_.end() ? nullptr : &*found;
}

bool ContextOrder::knows(StreamHandle stream) {
  const MutexLock lock(captures_.beginning());
  return find(stream) != nullptr;
}

void ContextOrder::created(StreamHandle stream) {
  const MutexLock lock(captures_.beginning());
  if (find(stream) != nullptr) return;
  made_.push_back({stream, 0, 0});
  // If nobody reports its work, it comes after the last cut from the start.
  if (!isFollowed()) orWait([&] { return catchUp(made_.back()); });
}

// The hub takes its work over. A new stream may get the handle, so nothing that is known of it
// stays.
void ContextOrder::destroying(StreamHandle stream) noexcept {
  const MutexLock lock(captures_.beginning());
  ++epoch_;
  Known* const known = find(stream);
  if (known == nullptr || known == &legacy_) return;
  if (hasWork(*known)) {
    orWait([&] {
      if (captures_.maybe() && isCaptured(stream)) return kSuccess;  // it will be broken
      const Code made = makeHub();
      if (made != kSuccess) return made;
      hub_.worked_at = epoch_;
      return putBehind(hub_, stream);
    });
  }
  made_.erase(made_.begin() + (known - made_.data()));
}

bool ContextOrder::capturing() noexcept {
  bool captured = false;
  (void)inContext([&] {
    captured = isCaptured(kLegacyStream) ||
               std::any_of(made_.begin(), made_.end(),
                           [&](const Known& known) { return isCaptured(known.stream); });
    return kSuccess;
  });
  return captured;
}

// ---- Cuts ---------------------------------------------------------------------------------------

void ContextOrder::open() noexcept {
  open_ = true;
  ++epoch_;
}

bool ContextOrder::cutAnew() noexcept {
  const MutexLock lock(captures_.beginning());
  if (captures_.maybe() || !isFollowed()) return false;
  open();
  return true;
}

void ContextOrder::beforeCapture() noexcept {
  if (open_) orWait([&] { return close(); });
}

Code ContextOrder::barrier() noexcept {
  if (isFollowed()) {
    open();
    return kSuccess;
  }
  anywhere_at_ = epoch_;
  has_work_ = true;
  open();
  return inContext([&] {
    const Code result = close();
    return result == kSuccess ? catchUpAll() : result;
  });
}

Code ContextOrder::reach(StreamHandle& hub) noexcept {
  const MutexLock lock(captures_.beginning());
  return inContext([&] {
    Code result = close();
    if (result == kSuccess) result = makeHub();
    if (result == kSuccess) result = catchUp(hub_);
    hub = hub_.stream;
    return result;
  });
}

// Puts a marker behind the last one and the event. It does not wait for the streams' work since the
// last cut: the next marker covers that.
Code ContextOrder::allAfter(EventHandle event) noexcept {
  const MutexLock lock(captures_.beginning());
  return inContext([&] {
    Code result = close();
    if (result == kSuccess) result = makeHub();
    if (result == kSuccess) result = driver_.waitEvent(hub_.stream, event);
    if (result == kSuccess) result = mark(hub_);
    ++epoch_;
    return result != kSuccess || isFollowed() ? result : catchUpAll();
  });
}

Code ContextOrder::fence(std::vector<EventHandle>& events) noexcept {
  Code result = kSuccess;
  forEach([&](Known& known) {
    if (result != kSuccess) return;
    EventHandle event = nullptr;
    result = recordOn(event, known.stream);
    if (event != nullptr) events.push_back(event);
  });
  return result;
}

namespace {

// The last marker that the thread's own default stream comes after.
thread_local std::uint64_t own_behind = 0;

}  // namespace

// ---- Markers. Pre: the context is current. ------------------------------------------------------

// The legacy stream refuses to say where a stream that synchronises with it is captured.
bool ContextOrder::isCaptured(StreamHandle stream) noexcept {
  CaptureState status = kNoCapture;
  const Code result = driver_.isCapturing(stream, &status);
  return result != kSuccess || status != kNoCapture;
}

Code ContextOrder::recordOn(EventHandle& event, StreamHandle stream) noexcept {
  if (event == nullptr) {
    const Code made = driver_.createEvent(&event);
    if (made != kSuccess) return made;
  }
  return driver_.recordEvent(event, stream);
}

Code ContextOrder::makeHub() noexcept {
  if (hub_.stream != nullptr) return kSuccess;
  return driver_.createStream(&hub_.stream);
}

Code ContextOrder::catchUp(Known& known) noexcept {
  if (known.behind >= marker_number_) return kSuccess;
  const Code result = driver_.waitEvent(known.stream, marker_);
  if (result == kSuccess) known.behind = marker_number_;
  return result;
}

Code ContextOrder::catchUp(StreamHandle stream) noexcept {
  if (stream == kPerThreadStream) {
    Known own{stream, own_behind, 0};
    const Code result = catchUp(own);
    own_behind = own.behind;
    return result;
  }
  if (Known* const known = find(stream)) return catchUp(*known);
  Known unknown{stream, 0, 0};
  return catchUp(unknown);
}

bool ContextOrder::isBehind(StreamHandle stream) noexcept {
  if (stream == kPerThreadStream) return own_behind < marker_number_;
  const Known* const known = find(stream);
  return (known == nullptr ? 0 : known->behind) < marker_number_;
}

// Captured streams have no work to come but their graph's, which is launched elsewhere. A wait that
// is put on the legacy stream holds up all per-thread default streams too.
Code ContextOrder::catchUpAll() noexcept {
  Code result = kSuccess;
  const auto one = [&](Known& known) {
    if (captures_.maybe() && isCaptured(known.stream)) return;
    if (const Code caught = catchUp(known); caught != kSuccess) result = caught;
  };
  one(legacy_);
  for (Known& known : made_) one(known);
  return result;
}

// The event is free again at once: a wait covers the work that the event was recorded behind at
// that time.
Code ContextOrder::putBehind(Known& later, StreamHandle earlier) noexcept {
  const Code result = recordOn(passing_, earlier);
  return result == kSuccess ? driver_.waitEvent(later.stream, passing_) : result;
}

// A marker comes after the one before it.
Code ContextOrder::mark(Known& place) noexcept {
  Code result = catchUp(place);
  if (result == kSuccess) result = recordOn(marker_, place.stream);
  if (result == kSuccess) place.behind = marker_number_ = ++last_marker_;
  return result;
}

bool ContextOrder::hasWork(const Known& known) const noexcept {
  return known.worked_at != 0 || (anywhere_at_ != 0 && &known != &hub_) || !isFollowed();
}

Code ContextOrder::close() noexcept {
  if (!open_) return kSuccess;
  int with_work = 0;
  Known* last = nullptr;
  forEach([&](Known& known) {
    if (!hasWork(known)) return;
    ++with_work;
    last = &known;
  });
  Code result = kSuccess;
  if (with_work == 1) {
    result = mark(*last);
  } else if (with_work > 1) {
    result = makeHub();
    forEach([&](Known& known) {
      if (result == kSuccess && hasWork(known) && &known != &hub_)
        result = putBehind(hub_, known.stream);
    });
    if (result == kSuccess) result = mark(hub_);
  }
  if (result != kSuccess) return result;
  if (with_work > 0) add(record().barriers);
  closed();
  return result;
}

void ContextOrder::closed() noexcept {
  open_ = false;
  forEach([](Known& known) { known.worked_at = 0; });
  anywhere_at_ = submitting_any_ > 0 ? epoch_.load() : 0;
  has_work_ = anywhere_at_ != 0;
}

// ---- Work ---------------------------------------------------------------------------------------

ContextOrder::Entered ContextOrder::enter(StreamHandle stream, std::uint64_t& seen) noexcept {
  const MutexLock lock(captures_.beginning());
  bool captured = false;
  if (open_ || captures_.maybe() || isBehind(stream)) {
    orWait([&] {
      captured = captures_.maybe() && isCaptured(stream);
      if (captured) return kSuccess;
      const Code result = close();
      return result == kSuccess ? catchUp(stream) : result;
    });
  }
  if (captured) return Entered::kCaptured;
  Known* const known = find(stream);
  if (known == nullptr) return Entered::kUnknown;
  known->worked_at = seen = epoch_;
  own_worked_ |= stream == kPerThreadStream;
  has_work_ = true;
  return Entered::kKnown;
}

void ContextOrder::worked(StreamHandle stream) noexcept {
  const MutexLock lock(captures_.beginning());
  if (find(stream) == nullptr) made_.push_back({stream, 0, 0});
  find(stream)->worked_at = epoch_;
  has_work_ = true;
}

void ContextOrder::enterAny() noexcept {
  const MutexLock lock(captures_.beginning());
  orWait([&] {
    const Code result = close();
    return result == kSuccess ? catchUpAll() : result;
  });
  anywhere_at_ = epoch_;
  has_work_ = true;
}

void ContextOrder::workedAny() noexcept {
  const MutexLock lock(captures_.beginning());
  anywhere_at_ = epoch_;
  has_work_ = true;
}

// ---- The host waits -----------------------------------------------------------------------------

// Work that is submitted from now on is reported anew. A wait for the legacy stream may have been
// one for no per-thread default stream.
ContextOrder::Waiting ContextOrder::waiting() noexcept {
  const MutexLock lock(captures_.beginning());
  return {++epoch_, marker_number_};
}

void ContextOrder::waited(const Waiting& since, const StreamHandle* stream) noexcept {
  const MutexLock lock(captures_.beginning());
  const auto settle = [&](Known& known) {
    if (known.worked_at < since.epoch) known.worked_at = 0;
    known.behind = std::max(known.behind, stream == nullptr ? since.marker : 0);
  };
  if (stream != nullptr) {
    Known* const known = find(*stream);
    if (known != nullptr && (known != &legacy_ || !own_worked_)) settle(*known);
  } else {
    forEach(settle);
    if (anywhere_at_ < since.epoch && submitting_any_ == 0) anywhere_at_ = 0;
  }
  bool any = anywhere_at_ != 0;
  forEach([&](Known& known) { any |= known.worked_at != 0; });
  has_work_ = any;
}

}  // namespace cistern::preload::GPU_NAMESPACE
