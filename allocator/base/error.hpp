// The exceptions that the C++ verbs throw. Each message names what was wrong and what is allowed.
// OutOfMemory lives with the engine, whose report it carries.
#pragma once

#include <stdexcept>
#include <string>

namespace cistern {

/// Base of everything Cistern throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A value outside what a verb accepts. Nothing was changed.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// A verb on a pool that its state does not allow; names the pool and that state. Nothing was
/// changed.
class PoolError : public Error {
 public:
  using Error::Error;
};

/// An option's key, value or list that cannot be taken. No option was changed.
class OptionError : public Error {
 public:
  using Error::Error;
};

}  // namespace cistern
