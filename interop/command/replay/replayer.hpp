// The loop of events: one script through one policy on one device.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "interop/command/replay/checker.hpp"
#include "interop/command/replay/dealer.hpp"
#include "interop/command/replay/meter.hpp"
#include "interop/command/replay/policy.hpp"
#include "interop/command/replay/progress_bar.hpp"
#include "interop/command/replay/script.hpp"
#include "interop/command/replay/stage.hpp"
#include "interop/command/replay/watch.hpp"

namespace cistern::command {

class Replayer {
 public:
  /// `checker` and `watch` may be null. With more than one thread, each event is another thread's
  /// in turn.
  Replayer(const Script& script, Stage& stage, Policy& policy, Checker* checker, Watch* watch,
           std::size_t threads);

  /// Plays the whole script once, then frees what lives to its end. False, with the reason in
  /// failure(), when a request was not served; the rest was then not played.
  bool round(const OnProgress& on_progress);
  const std::string& failure() const { return failure_; }
  /// All rounds so far, without the work at their ends.
  const Meter& meter() const { return meter_; }
  /// The most host memory that the policy held at the end of a round.
  std::uint64_t hostBytesPeak() const { return host_bytes_peak_; }

 private:
  void play(const OnProgress& on_progress);
  /// The work that the program has queued on a block's stream when it gets the block, and when it
  /// frees it.
  enum class Queued : std::uint8_t { kNothing, kWork, kChecks };

  Queued queued() const;
  template <Queued What>
  void playSome(std::size_t count);
  using PlaySome = void (Replayer::*)(std::size_t count);
  void playWatched(PlaySome play_some, std::size_t count);
  template <Queued What>
  void playStep(const Step& step);
  void* serve(std::uint64_t bytes, Stream stream);
  template <Queued What>
  void allocate(const Step& step);
  template <Queued What>
  void useLast(const Held& held);
  template <Queued What>
  void free(Held& held);
  template <Queued What>
  void freeWhileUsed(std::uint32_t slot);
  void freeRest();
  template <class Look>
  void check(const Held& held, Look look);
  template <class Part>
  void attempt(Part part);
  void fail(const std::string& why);

  const Script& script_;
  Stage& stage_;
  Policy& policy_;
  Checker* checker_;
  Watch* watch_;
  Meter meter_;
  std::optional<Dealer> dealer_;
  std::vector<Held> held_;        ///< by slot; a null pointer where there is no block
  std::set<std::uint32_t> used_;  ///< slots of freed blocks that the policy still keeps
  std::size_t played_ = 0;        ///< steps of this round that were begun
  std::string failure_;
  std::uint64_t host_bytes_peak_ = 0;
};

}  // namespace cistern::command
