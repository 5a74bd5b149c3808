// What a getter throws when a library's call fails.
#pragma once

#include <string>

#include "allocator/base/error.hpp"

namespace cistern {

/// A library's call that failed: "cuBLAS: cublasCreate failed: CUBLAS_STATUS_ALLOC_FAILED (3): the
/// resource allocation failed". Name and text are the library's own.
class LibraryError : public Error {
 public:
  LibraryError(std::string library, std::string call, int code, std::string name, std::string text);

  const std::string& library() const noexcept { return library_; }
  const std::string& call() const noexcept { return call_; }
  int code() const noexcept { return code_; }

 private:
  std::string library_, call_;
  int code_;
};

}  // namespace cistern
