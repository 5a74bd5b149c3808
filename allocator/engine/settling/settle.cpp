#include "allocator/engine/settling/settle.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "allocator/engine/overflow/overflow.hpp"
#include "allocator/engine/pages/release.hpp"
#include "allocator/engine/settling/candidates.hpp"
#include "allocator/engine/settling/exchange.hpp"
#include "cistern/error.hpp"

namespace cistern {
namespace {

/// The part of what has moved to the host that comes home at a time. Steps may need the room.
constexpr std::uint64_t kPartHome = 8;
/// An attempt to come home that makes the device overflow again doubles the quiet steps before the
/// next, up to this.
constexpr std::uint32_t kMostQuiet = 1024;

/// One settle.
class Settling {
 public:
  Settling(Engine& engine, Stream stream, std::uint64_t most)
      : engine_(engine), stream_(stream), most_(most) {}

  SettleReport run() {
    const MutexLock one_at_a_time(engine_.waiting_mutex);
    const std::uint64_t since = engine_.device.hostNanoseconds();
    engine_.device.synchronizeStream(stream_).orThrow();
    const std::uint64_t waited = engine_.device.hostNanoseconds() - since;
    forgetOthers();
    const MutexLock still(engine_.pages.mutex());
    SettleReport report = move();
    report.waited_ns = waited;
    return report;
  }

 private:
  SettleReport move() CISTERN_REQUIRES(engine_.pages.mutex(), engine_.waiting_mutex) {
    notes().blocks.note(livingOn(engine_, stream_));
    releaseMoved();
    const std::uint64_t resident = residentOverflow(engine_, stream_, notes().blocks);
    noteBus(resident + engine_.pages.movedToHost());
    const std::uint64_t over = overOfStep(resident),
                        before = std::exchange(notes().last_over, over);
    noteQuiet(over);
    SettleReport report;
    // What did not fit in one step alone may never come again.
    if (const std::uint64_t out = std::min(over, before); out > 0) {
      report.to_host =
          exchangeMemory(engine_, pagesForHost(engine_, stream_, notes().blocks, {out, most_}),
                         PageKind::kOverflow, stream_);
    } else if (notes().quiet >= notes().wait) {
      releaseFreeOverflow();
      report.to_device = bringHome();
    }
    return report;
  }

  // Streams that are gone.
  void forgetOthers() CISTERN_REQUIRES(engine_.waiting_mutex) {
    std::erase_if(engine_.settle_notes, [&](const auto& of) {
      engine_.waiting_mutex.assertHeld();
      return engine_.streams.look(of.first).forgotten;
    });
  }

  SettleNotes& notes() CISTERN_REQUIRES(engine_.waiting_mutex) {
    return engine_.settle_notes[stream_];
  }

  // The most that lay on the host at a time, without what lives there from step to step.
  std::uint64_t overOfStep(std::uint64_t resident) {
    std::uint64_t peak = 0;
    for (Heap* heap : engine_.heaps.with(PageKind::kOverflow)) {
      const MutexLock lock(heap->mutex());
      if (heap->stream() == stream_) peak += std::exchange(heap->step_peak, 0);
    }
    return peak > resident ? peak - resident : 0;
  }

  // A block of the step was written once and read once, and so was what lives there.
  void noteBus(std::uint64_t living) CISTERN_REQUIRES(engine_.waiting_mutex) {
    const std::uint64_t all = engine_.overflow_counts.handed_out;
    const std::uint64_t made = all - std::exchange(notes().handed_out, all);
    engine_.overflow_counts.step_bytes = 2 * (made + living);
  }

  void noteQuiet(std::uint64_t over) CISTERN_REQUIRES(engine_.waiting_mutex) {
    if (over == 0) {
      ++notes().quiet;
      return;
    }
    const bool too_early = std::exchange(notes().came_home, false);
    if (too_early) notes().wait = std::min(2 * notes().wait, kMostQuiet);
    notes().quiet = 0;
  }

  // Blocks that had moved are freed by now: their memory is not of the heap's kind.
  void releaseMoved() CISTERN_REQUIRES(engine_.pages.mutex(), engine_.waiting_mutex) {
    for (Heap* heap : engine_.heaps.all()) {
      if (!heap->onPages() || heap->stream() != stream_ || pagesOf(*heap) == PageKind::kHost)
        continue;
      (void)pages::releaseFree(engine_.pages.state(), *heap, {.only_moved = true});
    }
  }

  void releaseFreeOverflow() CISTERN_REQUIRES(engine_.pages.mutex(), engine_.waiting_mutex) {
    for (Heap* heap : engine_.heaps.with(PageKind::kOverflow)) {
      if (heap->stream() == stream_) (void)pages::releaseFree(engine_.pages.state(), *heap, {});
    }
  }

  // Memory that no step has taken from the device is room for sure. Without any, some that lies
  // free in the stream's heaps goes back, as steps may need less by now.
  std::uint64_t bringHome() CISTERN_REQUIRES(engine_.pages.mutex(), engine_.waiting_mutex) {
    const std::uint64_t away = engine_.overflow.reserved();
    if (away == 0) return 0;
    const std::uint64_t left = engine_.limit.left(), part = away / kPartHome;
    const std::uint64_t bytes =
        left >= pages::kUnit ? left : std::max(part, std::uint64_t{pages::kUnit});
    const std::vector<pages::PhysicalPage*> homing =
        pagesForDevice(engine_, stream_, notes().blocks, {bytes, most_});
    std::uint64_t need = 0;
    for (const pages::PhysicalPage* page : homing) need += page->bytes();
    for (Heap* heap : engine_.heaps.with(PageKind::kDevice)) {
      if (need <= engine_.limit.left()) break;
      if (heap->onPages() && heap->stream() == stream_) {
        const pages::ReleaseRule rule{.bytes = need - engine_.limit.left()};
        (void)pages::releaseFree(engine_.pages.state(), *heap, rule);
      }
    }
    const std::uint64_t moved = exchangeMemory(engine_, homing, PageKind::kDevice, stream_);
    notes().came_home = moved > 0;
    notes().quiet = 0;
    return moved;
  }

  Engine& engine_;
  const Stream stream_;
  const std::uint64_t most_;
};

}  // namespace

SettleReport settle(Engine& engine, Stream stream, std::uint64_t most) {
  engine.meet(stream);
  const RelaxedCaptureMode relaxed(engine.device);
  const Result<CaptureInfo> info = engine.device.captureInfo(stream);
  if (info && info.value().status != CaptureStatus::kNone) {
    throw InvalidArgument(
        fmt::format("settle: the stream {:#x} is being captured: end that first", stream.raw));
  }
  return Settling(engine, stream, most).run();
}

}  // namespace cistern
