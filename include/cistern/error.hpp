// The exceptions that the C++ verbs throw. Each message names what was wrong and what is allowed.
// DeviceFailure is in status.hpp, OutOfMemory in report.hpp, each with what it carries.
#pragma once

#include <stdexcept>
#include <string>

#include "cistern/types.hpp"

namespace cistern {

/// Base of everything Cistern throws.
class CISTERN_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A value outside what a verb accepts. Nothing was changed.
class CISTERN_API InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// A verb on a pool that its state does not allow; names the pool and that state. Nothing was
/// changed.
class CISTERN_API PoolError : public Error {
 public:
  using Error::Error;
};

/// An option's key, value or list that cannot be taken. No option was changed.
class CISTERN_API OptionError : public Error {
 public:
  using Error::Error;
};

}  // namespace cistern
