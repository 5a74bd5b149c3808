// The output streams of a command, and the way it says that it was called wrongly.
#pragma once

#include <ostream>

#include "cistern/error.hpp"

namespace cistern::command {

/// The exit status of the program.
enum ExitStatus : int {
  kDone = 0,     ///< all that was asked for was done
  kNotDone = 1,  ///< a trace was not served, this machine lacks what was asked for, or the output
                 ///< could not be written
  kBadUsage = 2  ///< an argument or a file that cannot be understood; nothing was done
};

struct Console {
  std::ostream& out;
  std::ostream& err;
  bool err_is_terminal = false;  ///< then long work shows on it how far it is
  bool colours = false;          ///< whether `out` is a terminal whose user wants them
};

/// An argument that cannot be taken: names it and what is allowed. Ends the program with kBadUsage.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace cistern::command
