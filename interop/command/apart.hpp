// Keeps the files of one command line apart: an output that is another's file would overwrite it.
#pragma once

#include <span>
#include <string>

namespace cistern::command {

/// A file that the command line names.
struct NamedFile {
  std::string said;  ///< what names it there: "--trace", "the trace"
  std::string path;  ///< empty: it is not given
};

/// Whether both paths name one file: by another spelling, a symbolic link, or a hard link. Neither
/// has to exist.
bool sameFile(const std::string& a, const std::string& b);

/// Throws UsageError, which names both, if an output is the file of another output or of an input.
/// An output may not be the regular file that a standard stream writes to, either. Changes no file.
void requireApart(std::span<const NamedFile> outputs, std::span<const NamedFile> inputs = {});

}  // namespace cistern::command
