// Memory that a program holds where it is, because others know its addresses:
// CachingAllocator::hold.
#include <fmt/format.h>

#include "allocator/engine/engine.hpp"
#include "cistern/allocator.hpp"

namespace cistern {
namespace {

[[noreturn]] void refuse(const AddressRange& what, Address at) {
  throw InvalidArgument(
      fmt::format("hold: [{:#x}, {:#x}) is not all memory of one segment of this allocator's: none "
                  "lies at {:#x}",
                  what.from, what.to, at));
}

// Returns where the memory that it holds ends. No segment goes from one heap to another meanwhile.
Address hold(Engine& engine, const AddressRange& what, FixedHold& by) {
  {
    const auto [segment, heap] = engine.locate(what.from);
    if (segment != nullptr && isRange(*segment)) return engine.pages.hold(*segment, what, by);
  }
  const MutexLock holding_several(engine.heaps_mutex);
  const auto [segment, heap] = engine.locate(what.from);
  const bool held = heap != nullptr && engine.segments.hold(*segment, *heap, what, by);
  return held ? what.to : what.from;
}

}  // namespace

std::shared_ptr<void> CachingAllocator::hold(const void* pointer, std::size_t bytes) {
  Engine& engine = engine_->here("hold");
  const AddressRange what{toAddress(pointer), toAddress(pointer) + bytes};
  if (bytes == 0) throw InvalidArgument("hold: a range of 0 bytes");
  if (what.to < what.from) refuse(what, what.from);
  const std::shared_ptr<FixedHold> held(new FixedHold, [&engine](FixedHold* of) {
    if (!engine.made.isHere())
      return;  // in a child of fork a thread that is not there may hold a lock
    engine.letGo(*of);
    delete of;
  });
  if (const Address end = cistern::hold(engine, what, *held); end != what.to) refuse(what, end);
  return held;
}

}  // namespace cistern
