// The counts that a pool of handles reports.
#pragma once

#include <vector>

#include "cistern/handles/library.hpp"

namespace cistern {

/// A pool's link to handleStatistics while the pool lives.
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
