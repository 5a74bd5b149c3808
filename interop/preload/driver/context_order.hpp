// The order of the work of one context.
//
// cudaFree waits for the device: work submitted after it runs after all work submitted before. A
// *cut* is the same without the host's wait, and put off until somebody could tell the difference.
// It costs only a note until work is submitted. Just before that the cut is *closed*: nothing lies
// between the two, so the place is exact. To close a cut, a *marker* is put behind all streams that
// had work before it: an event. Each stream waits for the last marker before its next work, when
// that comes.
//
//   one stream had work   the marker is recorded on it: one call, and none of the others'
//   several had           a stream of our own, the hub, waits for each; the marker is recorded
//   there none had              nothing to order
//
// So the hooks report each piece of work that the program submits, before and after
// (submitted_work.hpp). The work of a graph that is being captured does not count yet.
//
// Per-thread default streams, which nobody makes and others cannot name, synchronise with the
// legacy default stream by themselves: an event there comes after their work. Their work counts as
// work of the legacy stream; each waits by itself.
//
// Only one order at a time has its work followed so: that of the first context, while it is the
// only one. In other contexts, and where work may be submitted unseen, every stream counts as
// having work, and barrier() orders all of it at once.
//
// The lock of Captures guards everything: no capture begins while something is put into streams.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "interop/preload/driver/driver.hpp"
#include "interop/preload/driver/program_captures.hpp"
#include "interop/preload/record/ledger.hpp"

namespace cistern::preload::GPU_NAMESPACE {

class ContextOrder {
 public:
  ContextOrder(const Functions& driver, Captures& captures, ContextHandle context)
      : driver_(driver), captures_(captures), context_(context) {}
  /// Leaves its stream and its events, which go with the context.
  ~ContextOrder();
  ContextOrder(const ContextOrder&) = delete;
  ContextOrder& operator=(const ContextOrder&) = delete;

  ContextHandle context() const noexcept { return context_; }

  // ---- Whose work is followed ------------------------------------------------------------------

  /// The order whose work the hooks tell of; null: of none.
  static ContextOrder* followed() noexcept { return followed_.load(std::memory_order_acquire); }
  bool isFollowed() const noexcept { return followed() == this; }
  void follow() noexcept { followed_ = this; }
  /// From now on none is. Pre: all work that came before is waited for afterwards.
  static void followNone() noexcept { followed_ = nullptr; }
  /// Work may be submitted unseen from now on: it comes after the cuts so far.
  void unfollow() noexcept;
  /// The same of all orders, for good.
  static void workIsUnseen() noexcept { unseen_ = true; }
  /// How many calls have submitted work so far. Nothing where some may be submitted unseen, or is
  /// on its way.
  static std::optional<std::uint64_t> workSoFar() noexcept {
    return unseen_ ? std::nullopt : preload::workSoFar();
  }

  // ---- The program's streams -------------------------------------------------------------------

  bool knows(StreamHandle stream);
  void created(StreamHandle stream);
  /// A stream is about to be destroyed. Its queued work still runs.
  void destroying(StreamHandle stream) noexcept;

  // ---- Cuts ------------------------------------------------------------------------------------

  /// Work submitted from now on runs after all work submitted before. False: not so, as a capture
  /// may be under way. Pre: isFollowed().
  bool cut() noexcept {
    // Nothing was submitted since the last cut; or one is open, behind everything.
    if (!has_work_.load(std::memory_order_acquire) || open_.load(std::memory_order_acquire))
      return true;
    return cutAnew();
  }
  /// All that is submitted later, on any stream, comes after the event.
  Code allAfter(EventHandle event) noexcept;
  /// The hub comes after all that was submitted before the last cut, and is handed out.
  Code reach(StreamHandle& hub) noexcept;

  // Pre of what follows: the lock of Captures is held.

  /// A capture is about to begin: no cut stays open in it.
  void beforeCapture() noexcept;
  /// Whether some stream is captured, so that no cut is possible.
  bool capturing() noexcept;
  /// A cut, closed at once, with every stream behind it; where the work is followed, just a cut.
  Code barrier() noexcept;
  /// Appends events behind everything submitted so far. They are the caller's.
  Code fence(std::vector<EventHandle>& events) noexcept;

  // ---- Work (submitted_work.hpp) ---------------------------------------------------------------

  /// Changes when a stream that was let through has to be looked at anew.
  static std::uint64_t epoch() noexcept { return epoch_.load(std::memory_order_seq_cst); }
  enum class Entered : std::uint8_t { kKnown, kUnknown, kCaptured };
  /// Work is about to be submitted to the stream, which comes after the last cut. `seen`: the epoch
  /// that this holds for. kUnknown: nobody told of the stream so far, so that it may be none.
  Entered enter(StreamHandle stream, std::uint64_t& seen) noexcept;
  /// Work was submitted to the stream.
  void worked(StreamHandle stream) noexcept;
  /// Work is about to be submitted, to whichever streams.
  void enterAny() noexcept;
  /// Such work was submitted.
  void workedAny() noexcept;
  /// How many calls may be submitting such work now: as long as there are some, each stream counts
  /// as having work.
  static void anyBegins() noexcept { ++submitting_any_; }
  static void anyEnded() noexcept { --submitting_any_; }

  // ---- The host waits --------------------------------------------------------------------------

  struct Waiting {
    std::uint64_t epoch = 0, marker = 0;
  };
  /// The program is about to wait for the submitted work.
  Waiting waiting() noexcept;
  /// It has waited for one stream, or for all of them (null).
  void waited(const Waiting& since, const StreamHandle* stream) noexcept;

 private:
  struct Known {
    StreamHandle stream = nullptr;
    std::uint64_t behind = 0;     ///< the last marker that it comes after
    std::uint64_t worked_at = 0;  ///< the epoch of its last work since the last cut; 0: none
  };

  template <class Call>
  Code inContext(Call call) noexcept;
  template <class Call>
  void orWait(Call call) noexcept;
  bool isCaptured(StreamHandle stream) noexcept;
  Code recordOn(EventHandle& event, StreamHandle stream) noexcept;
  Code makeHub() noexcept;
  Code catchUp(Known& known) noexcept;
  Code catchUp(StreamHandle stream) noexcept;
  bool isBehind(StreamHandle stream) noexcept;
  Code catchUpAll() noexcept;
  Code putBehind(Known& later, StreamHandle earlier) noexcept;
  Code mark(Known& place) noexcept;
  Code close() noexcept;
  void closed() noexcept;
  bool hasWork(const Known& known) const noexcept;
  template <class Visit>
  void forEach(Visit visit) noexcept;
  Known* find(StreamHandle stream) noexcept;
  bool cutAnew() noexcept;
  void open() noexcept;

  const Functions& driver_;
  Captures& captures_;
  const ContextHandle context_;
  Known legacy_{kLegacyStream, 0, 0};
  Known hub_;
  std::vector<Known> made_;
  EventHandle marker_ = nullptr;
  EventHandle passing_ = nullptr;     ///< for one wait at a time
  std::uint64_t marker_number_ = 0;   ///< of the last marker; 0: no marker yet
  std::uint64_t anywhere_at_ = 1;     ///< like worked_at, of every stream
  bool own_worked_ = false;           ///< per-thread default streams have had work
  std::atomic<bool> open_{false};     ///< a cut is open: nothing was submitted since
  std::atomic<bool> has_work_{true};  ///< some stream has, since the last cut

  static inline std::atomic<ContextOrder*> followed_{nullptr};
  static inline std::atomic<std::uint64_t> epoch_{2};
  static inline std::atomic<int> submitting_any_{0};
  static inline std::atomic<bool> unseen_{false};
  static inline std::uint64_t last_marker_ = 0;  // of all orders
};

}  // namespace cistern::preload::GPU_NAMESPACE
