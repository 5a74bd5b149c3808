// The files that options name: whether one can be written, asked before the work whose result goes
// there, and the writing.
#pragma once

#include <span>
#include <string>

namespace cistern::command {

/// Throws UsageError if the file cannot be written. An existing file stays unchanged, and a missing
/// one stays missing. `option`: the option that named it.
void requireWritable(const std::string& option, const std::string& path);

/// Writes the file as a ReplacedFile. Throws Error that names the option, the file and the reason.
void writeFile(const std::string& option, const std::string& path, const std::string& text);

// Keeps the files of one command line apart: an output that is another's file would overwrite it.

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
