// An allocator is put together: the engine, and what is told of it or comes in from outside. Its
// verbs are in the libraries below: allocator/caching_allocator.cpp has most.
#include <memory>

#include "allocator/base/process.hpp"
#include "allocator/emptying/emptied_by_command.hpp"
#include "allocator/emptying/keep_limit.hpp"
#include "allocator/engine/exchange/exchange.hpp"
#include "allocator/history/engine_history.hpp"
#include "allocator/reports/exit_reports.hpp"
#include "cistern/allocator.hpp"

namespace cistern {
namespace {

// On a device without pages, segments do what pages would have done.
Options possibleOn(const Device& device, Options options) {
  if (!PageBacking::supportedBy(device)) options.backing = Backing::kSegments;
  return options;
}

}  // namespace

CachingAllocator::CachingAllocator(Device& device, const Options& options)
    : engine_(std::make_unique<Engine>(device, possibleOn(device, options),
                                       device.memoryInfo().orThrow().total_bytes, putBack)) {
  (void)driverMayBeCalled();  // registers for the exit, which must happen before it
  setMemoryFraction(options.memory_fraction);
  if (options.limit != 0 && options.limit < limit()) setLimit(options.limit);
  if (options.overflow != 0) setOverflow(options.overflow);
  engine_->observer = std::make_unique<EngineHistory>(*engine_);
  EngineHistory::of(*engine_).recordByOptions();
  if (options.keep_ms != 0)
    engine_->keeper = std::make_shared<KeepLimit>(*engine_, options.keep_ms);
  exit_reports::add(*engine_);
  emptied_by_command::add(*engine_);
}

// In a child of fork nothing is given back: no lock can be had for sure, and the device is the
// parent's.
CachingAllocator::~CachingAllocator() {
  if (engine_->made.isHere()) {
    engine_->keeper.reset();
    if (driverMayBeCalled()) engine_->memory_hooks.end();
    emptied_by_command::remove(*engine_);
    exit_reports::remove(*engine_);
    EngineHistory::of(*engine_).leave();
  } else {
    (void)engine_.release();
  }
}

}  // namespace cistern
