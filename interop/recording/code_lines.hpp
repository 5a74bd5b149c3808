// Recordings of C++ programs name frames by module and offset: "/usr/bin/app+0x1234". Here they get
// the names of functions, source files and lines, from the module's own symbols.
#pragma once

#include <vector>

#include "interop/recording/recording_model.hpp"

namespace cistern::recording {

/// Names the lines of all frames that say only a module and an offset, as far as addr2line (of
/// binutils) or llvm-symbolizer is installed and the module has symbols. Only modules that belong
/// to root or to the user, and that nobody else may write, are looked at: a recording may name any
/// file. Cistern's own frames, where they are innermost, leave the stacks. A note in the recording
/// says if there is no such tool. Throws std::bad_alloc.
void nameCodeLines(std::vector<Recording>& recordings);

}  // namespace cistern::recording
