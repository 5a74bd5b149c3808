// While it lives, a wrong free by this thread is noted here, for who answers it with a status. The
// program's own hook is called all the same; the default one, which prints, is not.
#pragma once

#include <optional>

#include "cistern/report.hpp"

namespace cistern {

class MisuseScope {
 public:
  MisuseScope() noexcept : outer_(innermost_) { innermost_ = this; }
  ~MisuseScope() { innermost_ = outer_; }
  MisuseScope(const MisuseScope&) = delete;
  MisuseScope& operator=(const MisuseScope&) = delete;

  bool any() const { return noted_.has_value(); }
  /// Pre: any().
  const Misuse& noted() const { return *noted_; }

  /// The calling thread's, to be told; null for none.
  static MisuseScope* current() noexcept { return innermost_; }
  void note(const Misuse& misuse) { noted_ = misuse; }

 private:
  std::optional<Misuse> noted_;
  MisuseScope* const outer_;
  // A word: little enough for what a thread has of them in a library that is loaded later too.
  [[gnu::tls_model("initial-exec")]] inline static constinit thread_local MisuseScope* innermost_ =
      nullptr;
};

}  // namespace cistern
