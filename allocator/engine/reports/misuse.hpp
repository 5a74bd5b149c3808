// Wrong frees: what is known about one, and who is told. A free is noexcept, so a wrong one is
// reported through a hook instead of thrown.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "allocator/base/types.hpp"

namespace cistern {

enum class MisuseKind : std::uint8_t {
  kDoubleFree,       ///< the block there is free already, or its free is waiting for queued work
  kForeignPointer,   ///< no segment of this allocator covers it
  kInteriorPointer,  ///< it points inside a block that is in use
};

/// A wrong free (or recordStream, or size query). Nothing was changed by it.
struct Misuse {
  MisuseKind kind = MisuseKind::kForeignPointer;
  std::string verb;  ///< "free", "recordStream", …
  Address pointer = 0;
  Address block = 0;  ///< the block that covers it; 0 when there is none
  std::uint64_t block_bytes = 0;
  Stream stream;                   ///< the stream of the heap it lies in
  const void* freed_by = nullptr;  ///< the code that freed it, when still remembered
  std::uint32_t freed_on_thread = 0;

  /// One line, with the name of the function that freed it where it can be told.
  std::string text() const;
};

/// Called without a lock held, and may call every verb; must not throw.
using MisuseHook = std::function<void(const Misuse&)>;

/// The hook that is in place when none was set: prints the text to stderr; in a debug build it
/// then aborts.
void defaultMisuseHook(const Misuse& misuse);

}  // namespace cistern
