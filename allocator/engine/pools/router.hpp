// Requests that name no pool, and the hook through which they find one.
#pragma once

#include <cstdint>
#include <memory>

#include "cistern/types.hpp"

namespace cistern {

class Pool;
class Recording;

struct Route {
  Pool* pool = nullptr;                    ///< null: the default pool
  std::shared_ptr<Recording> recording{};  ///< of the capture that the request is part of, if any
  std::uint32_t part = 0;                  ///< the number of the part of that capture
  std::shared_ptr<void> token{};           ///< the pool's, unless something else keeps it meanwhile
};

/// The hook through which such requests find their pool. The engine asks it only while it is set;
/// pools/ sets it while some scope or capture is active. Thread-safe.
class Router {
 public:
  virtual ~Router() = default;
  /// Which of them may catch a request: one that names its pool is caught by captures only.
  enum class Asked : std::uint8_t { kCapturesAndScopes, kCaptures };
  /// The route of a request of the calling thread on `stream`.
  virtual Route route(Stream stream, Asked asked) = 0;
};

}  // namespace cistern
