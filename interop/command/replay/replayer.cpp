#include "interop/command/replay/replayer.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "interop/command/replay/grouped.hpp"
#include "interop/command/replay/trace_shortage.hpp"

namespace cistern::command {
namespace {

constexpr std::size_t kBetweenProgress = 8'192;  // steps: some milliseconds

}  // namespace

Replayer::Replayer(const Script& script, Stage& stage, Policy& policy, Checker* checker,
                   Watch* watch, std::size_t threads)
    : script_(script),
      stage_(stage),
      policy_(policy),
      checker_(checker),
      watch_(watch),
      meter_(stage.device()),
      held_(script.slots) {
  if (threads > 1) dealer_.emplace(threads);
}

bool Replayer::round(const OnProgress& on_progress) {
  played_ = 0;
  if (watch_ != nullptr) watch_->look();
  meter_.start();
  attempt([&] { play(on_progress); });
  meter_.stop(played_);
  if (watch_ != nullptr) watch_->look();  // a step that was not served, too
  stage_.settle();
  host_bytes_peak_ = std::max(host_bytes_peak_, policy_.hostBytes());
  attempt([&] { freeRest(); });
  return failure_.empty();
}

// Blocks of 0 bytes are not touched.
template <class Look>
void Replayer::check(const Held& held, Look look) {
  if (held.pointer == nullptr) return;
  meter_.exclude(look);
  stage_.takeOffLaunch();
}

template <class Part>
void Replayer::attempt(Part part) try {
  part();
} catch (const OutOfMemory& error) {
  fail(outOfMemoryText(error.report(), script_, stage_));
} catch (const Error& error) {
  fail(error.what());
}

void Replayer::fail(const std::string& why) {
  if (!failure_.empty()) return;  // the first one counts
  failure_ =
      fmt::format("event {} of {}: {}", grouped(played_), grouped(script_.steps.size()), why);
}

// The checks are work that lags as well as any other. Work alone is left on the meter's clock: it
// takes about 45 ns, and to look at the clock twice would take as much again.
Replayer::Queued Replayer::queued() const {
  if (checker_ != nullptr) return Queued::kChecks;
  return stage_.lags() ? Queued::kWork : Queued::kNothing;
}

void Replayer::play(const OnProgress& on_progress) {
  const std::size_t all = script_.steps.size();
  const PlaySome play_some = queued() == Queued::kChecks ? &Replayer::playSome<Queued::kChecks>
                             : queued() == Queued::kWork ? &Replayer::playSome<Queued::kWork>
                                                         : &Replayer::playSome<Queued::kNothing>;
  while (played_ < all) {
    const std::size_t count = std::min(kBetweenProgress, all - played_);
    if (watch_ != nullptr) {
      playWatched(play_some, count);
    } else {
      (this->*play_some)(count);
    }
    meter_.exclude([&] { on_progress(double(played_) / double(all)); });
  }
}

// One at a time, so that the loop of unwatched replays knows nothing of it.
void Replayer::playWatched(PlaySome play_some, std::size_t count) {
  const bool left_out = watch_->isLeftOut();
  for (; count > 0; --count) {
    const Step& step = script_.steps[played_];
    (this->*play_some)(1);
    if (left_out) {
      meter_.leaveOut([&] { watch_->stepped(step); });
    } else {
      watch_->stepped(step);
    }
  }
}

template <Replayer::Queued What>
void Replayer::playSome(std::size_t count) {
  if (dealer_) return dealer_->run(count, [this] { playStep<What>(script_.steps[played_]); });
  for (const Step* step = &script_.steps[played_]; count > 0; --count) playStep<What>(*step++);
}

template <Replayer::Queued What>
inline void Replayer::playStep(const Step& step) {
  ++played_;
  stage_.pass(step.after_us);
  switch (step.kind) {
    case StepKind::kAllocate:
      return allocate<What>(step);
    case StepKind::kFree:
      return free<What>(held_[step.slot]);
    case StepKind::kFreeWhileUsed:
      return freeWhileUsed<What>(step.slot);
    case StepKind::kUsesEnd:
      used_.erase(step.slot);
      return free<Queued::kNothing>(held_[step.slot]);
  }
}

// Allocators that are out of memory wait for the uses of freed blocks.
void* Replayer::serve(std::uint64_t bytes, Stream stream) try {
  return policy_.allocate(bytes, stream);
} catch (const Error&) {
  if (used_.empty()) throw;
  for (const std::uint32_t slot : used_) free<Queued::kNothing>(held_[slot]);
  used_.clear();
  return policy_.allocate(bytes, stream);
}

template <Replayer::Queued What>
void Replayer::allocate(const Step& step) {
  const Stream stream = stage_.stream(step.stream);
  Held& held = held_[step.slot];
  held = {serve(step.bytes, stream), step.bytes, stream};
  if (held.pointer == nullptr) return;
  if constexpr (What == Queued::kChecks) check(held, [&] { checker_->allocated(held); });
  if constexpr (What == Queued::kWork) stage_.queueWork(stream);
}

// The work that the program queues before it frees.
template <Replayer::Queued What>
void Replayer::useLast(const Held& held) {
  if constexpr (What == Queued::kChecks) check(held, [&] { checker_->freeing(held); });
  if constexpr (What == Queued::kWork) stage_.queueWork(held.stream);
}

template <Replayer::Queued What>
void Replayer::free(Held& held) {
  if (held.pointer == nullptr) return;
  useLast<What>(held);
  policy_.free(held);
  held.pointer = nullptr;
}

template <Replayer::Queued What>
void Replayer::freeWhileUsed(std::uint32_t slot) {
  Held& held = held_[slot];
  if (held.pointer == nullptr) return;
  useLast<What>(held);
  if (policy_.freeWhileUsed(held)) {
    held.pointer = nullptr;
  } else {
    used_.insert(slot);
  }
}

void Replayer::freeRest() {
  used_.clear();
  for (Held& held : held_) free<Queued::kNothing>(held);
}

}  // namespace cistern::command
