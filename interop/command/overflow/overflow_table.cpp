// --overflow as a table for people. It has a line for each program, and below it the rules and the
// bounds for each size of the device. At the end it says what the figures mean.
#include <algorithm>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/base/printable.hpp"
#include "interop/command/overflow/overflow_policy.hpp"
#include "interop/command/overflow/overflow_printer.hpp"
#include "interop/command/replay/grouped.hpp"
#include "interop/command/wrap.hpp"

namespace cistern::command {
namespace {

constexpr std::size_t kProgramWidth = 30;  // a longer one of a trace is cut
constexpr const char* kMeanings[] = {
    "device: the simulated device's memory, in % of what the program needs at its peak.",
    "over the bus: each block in host memory is written and read once in each step of the program, "
    "and what the allocator moves is added. A trace does not say how often a kernel reads a block, "
    "so that a real program pays more.",
    "x bound: the same beside the bound.",
    "short-lived: the part of it that blocks have which are freed within 64 allocations. Kernels "
    "may read them many times.",
    "worst step: the most of one step.",
    "bound: the least that any placement can do. Blocks may lie in host memory in parts there, and "
    "all sizes and lives are known beforehand.",
    "bound, once: the same if a block pays once in its life, not in each step that it lives in.",
};

class OverflowTable final : public OverflowPrinter {
 public:
  OverflowTable(std::ostream& out, const ReplaySettings& settings, bool colours)
      : out_(out), settings_(settings), colours_(colours) {}

  void begin() override {
    const std::string header =
        line("device", "rule", "over the bus", "x bound", "short-lived", "worst step");
    out_ << '\n' << bold(header) << "\n  ";
    for (std::size_t i = 2; i < header.size(); ++i) out_ << "─";
    out_ << '\n' << std::flush;
  }

  void program(const OverflowProgram& program) override {
    const std::string name =
        program.shares_name ? fmt::format("{} ({})", program.name, program.file) : program.name;
    out_ << (programs_++ == 0 ? "" : "\n") << bold(clipped(printable(name), kProgramWidth))
         << fmt::format(": {} at its peak, {}\n", formatBytes(program.need),
                        counted(program.starts.size(), "step"));
    steps_ = program.starts.size();
  }

  void row(const OverflowCase& found) override {
    std::string share = fmt::format("{} %", found.share);
    for (const OverflowRun& run : found.runs) {
      print(share, found, run);
      share.clear();
    }
    const OverflowBound& bound = found.bound;
    out_ << line("", "bound", formatBytes(bound.total()), "", "", formatBytes(bound.worst()))
         << '\n';
    out_ << line("", "bound, once", formatBytes(bound.once), "", "", "") << '\n';
    out_ << fmt::format("  {:8}too large for it: {} of {}\n", "", grouped(bound.shortIterations()),
                        counted(steps_, "step"))
         << std::flush;
  }

  void end() override {
    out_ << '\n'
         << wrapped(fmt::format("Replayed on simulated devices, by cistern {}.", CISTERN_VERSION));
    const std::string conf = settings_.options.conf();
    out_ << wrapped(fmt::format("Options: {}.", conf.empty() ? "the defaults" : conf)) << '\n';
    for (const OverflowRule& rule : overflowRules())
      out_ << wrapped(fmt::format("{}: {}.", rule.name, rule.text), "  ", "");
    for (const char* const meaning : kMeanings) out_ << wrapped(meaning, "  ", "");
    out_ << std::flush;
  }

 private:
  static std::string line(std::string_view device, std::string_view rule, std::string_view bus,
                          std::string_view factor, std::string_view brief, std::string_view worst) {
    std::string text = fmt::format("  {:<6}  {:<11}  {:>12}  {:>8}  {:>11}  {:>11}", device, rule,
                                   bus, factor, brief, worst);
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

  void print(const std::string& share, const OverflowCase& found, const OverflowRun& run) {
    const BusBytes bytes = run.total();
    const std::uint64_t bound = found.bound.total();
    const std::string factor =
        bound == 0 ? "-" : fmt::format("{:.2f}", double(bytes.total()) / double(bound));
    const std::string brief =
        bytes.total() == 0
            ? "-"
            : fmt::format("{:.0f} %", 100 * double(bytes.of_short_lives) / double(bytes.total()));
    out_ << (run.ok() ? line(share, run.rule, formatBytes(bytes.total()), factor, brief,
                             formatBytes(run.worst()))
                      : line(share, run.rule, "-", "-", "-", "-"))
         << '\n';
    if (!run.ok()) printFailure(run.failure);
  }

  void printFailure(const std::string& failure) {
    std::istringstream lines(printableLines(failure));
    const char* first = "    ✗ ";
    for (std::string text; std::getline(lines, text); first = "      ")
      out_ << wrapped(text, "        ", first);
  }

  std::string bold(const std::string& text) const {
    return colours_ ? "\x1b[1m" + text + "\x1b[0m" : text;
  }

  std::ostream& out_;
  const ReplaySettings settings_;
  const bool colours_;
  std::size_t programs_ = 0;
  std::size_t steps_ = 0;  ///< of the program whose cases come
};

}  // namespace

std::unique_ptr<OverflowPrinter> overflowTable(std::ostream& out, const ReplaySettings& settings,
                                               bool colours) {
  return std::make_unique<OverflowTable>(out, settings, colours);
}

}  // namespace cistern::command
