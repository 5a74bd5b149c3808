// The hook through which requests that name no pool find theirs. The engine asks it only while it
// is set; pools/ sets it while some scope or capture is active.
#pragma once

#include <memory>

#include "cistern/types.hpp"

namespace cistern {

class Pool;
class Recording;

struct Route {
  Pool* pool = nullptr;                  ///< null: the default pool
  std::shared_ptr<Recording> recording;  ///< of the capture that the request is part of, if any
  std::shared_ptr<void> token;           ///< the pool's, unless something else keeps it meanwhile
};

/// Thread-safe.
class Router {
 public:
  /// Where a request of the calling thread on `stream` goes.
  virtual Route route(Stream stream) = 0;

 protected:
  Router() = default;
  ~Router() = default;  // kept as what it is: PoolTable::keepRouter
  Router(const Router&) = default;
  Router& operator=(const Router&) = default;
};

}  // namespace cistern
