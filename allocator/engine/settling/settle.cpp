#include "allocator/engine/settling/settle.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "allocator/engine/overflow/need.hpp"
#include "allocator/engine/overflow/overflow.hpp"
#include "allocator/engine/pages/release.hpp"
#include "allocator/engine/settling/amount.hpp"
#include "allocator/engine/settling/candidates.hpp"
#include "allocator/engine/settling/exchange.hpp"
#include "cistern/error.hpp"

namespace cistern {
namespace {

/// One settle.
class Settling {
 public:
  Settling(Engine& engine, Stream stream, std::uint64_t most)
      : engine_(engine), stream_(stream), most_(most) {}

  SettleReport run() {
    const MutexLock one_at_a_time(engine_.waiting_mutex);
    const std::uint64_t since = engine_.device.hostNanoseconds();
    engine_.device.synchronizeStream(stream_).orThrow();
    const std::uint64_t now = engine_.device.hostNanoseconds();
    forgetOthers();
    (void)notes();
    noteNeed();
    const MutexLock still(engine_.pages.mutex());
    SettleReport report = move(now);
    notes().ended_ns = engine_.device.hostNanoseconds();
    report.waited_ns = now - since;
    return report;
  }

 private:
  SettleReport move(std::uint64_t now)
      CISTERN_REQUIRES(engine_.pages.mutex(), engine_.waiting_mutex) {
    noteLiving();
    releaseMoved();
    const std::uint64_t resident = residentOverflow(engine_, stream_, notes().blocks);
    noteBus(resident + engine_.pages.movedToHost());
    const std::uint64_t on_host = resident + engine_.pages.movedToHost();
    const SettleAmount amount = amountOf(notes(), {.over = overOfStep(resident),
                                                   .need = std::exchange(notes().need, 0),
                                                   .capacity = capacityOf(engine_),
                                                   .on_host = on_host,
                                                   .ns = now - notes().ended_ns});
    if (amount.quiet) releaseFreeOverflow();
    SettleReport report;
    report.to_host = takeOut(amount.to_host);
    report.to_device = bringHome(amount.to_device);
    return report;
  }

  // The peak is that of all streams. Each gets it, whichever settles first.
  void noteNeed() CISTERN_REQUIRES(engine_.waiting_mutex) {
    const std::uint64_t peak = takePeak(engine_, StatSums::kSettle);
    for (auto& [stream, of] : engine_.settle_notes) of.need = std::max(of.need, peak);
  }

  // A mark without its note would be another block's.
  void noteLiving() CISTERN_REQUIRES(engine_.pages.mutex(), engine_.waiting_mutex) {
    try {
      notes().blocks.note(markLiving(engine_, stream_));
    } catch (...) {
      notes().blocks.forget();
      throw;
    }
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

  std::uint64_t takeOut(std::uint64_t bytes)
      CISTERN_REQUIRES(engine_.pages.mutex(), engine_.waiting_mutex) {
    if (bytes == 0) return 0;
    return exchangeMemory(engine_, pagesForHost(engine_, stream_, notes().blocks, {bytes, most_}),
                          PageKind::kOverflow, stream_);
  }

  // Some that lies free in the stream's heaps may have to go back for it.
  std::uint64_t bringHome(std::uint64_t bytes)
      CISTERN_REQUIRES(engine_.pages.mutex(), engine_.waiting_mutex) {
    if (bytes == 0) return 0;
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
    return exchangeMemory(engine_, homing, PageKind::kDevice, stream_);
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
