// How the figures of --overflow are printed: as a table for people, or as JSON for programs. One
// file each. Each device's rows are printed as they come.
#pragma once

#include <memory>
#include <ostream>

#include "interop/command/overflow/overflow_figures.hpp"
#include "interop/command/replay/replay_settings.hpp"

namespace cistern::command {

class OverflowPrinter {
 public:
  OverflowPrinter() = default;
  virtual ~OverflowPrinter() = default;
  OverflowPrinter(const OverflowPrinter&) = delete;
  OverflowPrinter& operator=(const OverflowPrinter&) = delete;

  virtual void begin() {}
  /// Its cases come next.
  virtual void program(const OverflowProgram& program) = 0;
  virtual void row(const OverflowCase& found) = 0;
  virtual void end() {}
};

std::unique_ptr<OverflowPrinter> overflowTable(std::ostream& out, const ReplaySettings& settings,
                                               bool colours);
std::unique_ptr<OverflowPrinter> overflowJson(std::ostream& out, const ReplaySettings& settings);

}  // namespace cistern::command
