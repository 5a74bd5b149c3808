// What a pool of handles tells of itself.
#pragma once

#include <vector>

#include "cistern/handles/library.hpp"

namespace cistern {

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
