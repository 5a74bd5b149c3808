// The history of one allocator: what it tells its observer, from when to when, and where that is
// written. CachingAllocator's verbs on the history (allocator.hpp) are its functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "allocator/engine/engine.hpp"
#include "allocator/history/history_file.hpp"
#include "allocator/history/memory_history.hpp"

namespace cistern {

/// Thread-safe. Each allocator has one from its begin, as its observer.
class EngineHistory final : public History {
 public:
  explicit EngineHistory(Engine& engine) : engine_(engine) {}
  static EngineHistory& of(Engine& engine) { return static_cast<EngineHistory&>(*engine.observer); }

  /// The verbs: allocator.hpp says what they throw.
  void record(const HistorySettings& settings);
  void stop();
  /// `failure`: of the request that is the reason.
  void dump(const std::string& path, const OutOfMemoryReport* failure = nullptr);
  /// Records as the options say, for an allocator that begins. Throws as record().
  void recordByOptions();
  /// stop(), for an allocator that goes: says on stderr what stop() throws.
  void leave() noexcept;

  /// Notes the failure, if a history is recorded. Writes a dump where the option oom_dump says, and
  /// sets report.dump, also if it cannot be written.
  void failed(OutOfMemoryReport& report) noexcept override;
  /// A block that the program has lives in the history, unless the host had no memory to note it,
  /// and no other block does.
  void audit(const std::vector<Heap*>& heaps) const override;

 private:
  /// The remains of a history that has ended.
  struct Ended {
    std::string failure;                  ///< why its file is not whole
    std::shared_ptr<HistoryNames> names;  ///< to be let go of without a lock
  };

  Ended end() CISTERN_REQUIRES(turn_);
  void begin(const std::shared_ptr<HistoryNames>& names) CISTERN_REQUIRES(turn_);
  /// Adds the blocks that live, and all memory, each page where it lies. Pre: all heaps are held.
  void addAll(const std::vector<Heap*>& heaps);
  /// What a history that began now would have; then the failure, if there is one.
  HistoryPart present(const std::shared_ptr<HistoryNames>& names, const OutOfMemoryReport* failure);

  Engine& engine_;
  Mutex turn_{LockRank::kHistories};  ///< of threads that begin and end histories
  std::unique_ptr<HistoryFile> file_ CISTERN_GUARDED_BY(turn_);
};

}  // namespace cistern
