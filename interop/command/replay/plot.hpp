// --plot: collects the data of one program's picture while the program is replayed, and writes the
// picture.
#pragma once

#include <string>

#include "interop/command/plot/picture.hpp"
#include "interop/command/replay/measurement.hpp"
#include "interop/command/replay/plot_file.hpp"
#include "interop/command/replay/replay_settings.hpp"
#include "interop/command/replay/script.hpp"

namespace cistern::command {

class Plot {
 public:
  /// Pre: settings.plot names a file. Throws UsageError when it cannot be written.
  explicit Plot(const ReplaySettings& settings) : rounds_(settings.rounds), file_(settings.plot) {
    picture_.cap = settings.capacity;
  }

  /// The program whose rows come next.
  void begin(const Script& script);
  void row(const Measurement& row);
  /// `device`: in words. Throws Error when the file cannot be written after all.
  void write(const std::string& device);

  const std::string& path() const { return file_.path(); }

 private:
  const std::uint64_t rounds_;
  PlotFile file_;
  Picture picture_;
  std::string not_replayed_;  ///< a sentence for each policy
};

}  // namespace cistern::command
