// How many handles there are, of which library, on which device; and their workspaces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cistern {

/// The handles of one library on one device. created == live + free + destroyed + leaked.
struct HandleCounts {
  std::uint64_t created = 0;    ///< ever
  std::uint64_t live = 0;       ///< held by a thread's window
  std::uint64_t free = 0;       ///< waiting for the next thread
  std::uint64_t destroyed = 0;  ///< by their pool
  std::uint64_t leaked = 0;     ///< on purpose, when their pool was gone

  friend bool operator==(const HandleCounts&, const HandleCounts&) = default;
};

struct HandleStats {
  std::string library;
  int device = 0;
  HandleCounts handles;
};

/// One entry for each pool that is alive and each device on which it has ever made a handle, in the
/// order in which the pools were made. Exact for each entry; entries are read one after the other.
std::vector<HandleStats> handleStatistics();

/// What a pool gives to handleStatistics while it lives.
class HandleCountsSource {
 public:
  HandleCountsSource(const HandleCountsSource&) = delete;
  HandleCountsSource& operator=(const HandleCountsSource&) = delete;
  virtual void appendTo(std::vector<HandleStats>& all) const = 0;

 protected:
  HandleCountsSource() = default;
  ~HandleCountsSource() = default;
  /// The most derived constructor's last step, and its destructor's first.
  void enlist();
  void delist() noexcept;
};

}  // namespace cistern
