// The command line of `cistern report`. Read next: report/report_arguments.hpp,
// report/run_report.hpp.
#include <array>
#include <memory>
#include <vector>

#include <CLI/CLI.hpp>

#include "interop/command/commands.hpp"
#include "interop/command/environment.hpp"
#include "interop/command/replay/policy.hpp"
#include "interop/command/report/report_arguments.hpp"
#include "interop/command/report/run_report.hpp"
#include "interop/command/writable.hpp"

namespace cistern::command {
namespace {

constexpr std::uint32_t kMostGpuNumber = 65'535;

void addInput(CLI::App& parser, ReportArguments& a) {
  parser
      .add_option(
          "file", a.files,
          "A trace, a dump, a snapshot of Cistern's or of PyTorch's, or an RMM log; gzip or "
          "plain. Two are compared: what grew, and what went")
      ->check(kNotEmpty)
      ->type_name("FILE");
  parser.add_option("--gpu", a.gpu, "The one GPU of a PyTorch memory snapshot; else all")
      ->check(CLI::Range(0u, kMostGpuNumber))
      ->type_name("N");
  parser
      .add_option("--max-unpacked", a.max_unpacked,
                  "The most that a gzip may unpack to (8 MiB, or 100 times its size)")
      ->check(kNotEmpty)
      ->type_name("SIZE");
}

void addContents(CLI::App& parser, ReportArguments& a) {
  parser
      .add_option(
          "--at", a.moments,
          "A moment to show exactly, besides the peak and failures: a time as 12.5s, a name "
          "that the program gave, or the number of an event")
      ->allow_extra_args(false)
      ->check(kNotEmpty)
      ->type_name("MOMENT");
  parser
      .add_option(
          "--policy", a.policies,
          policyHelp(
              "Other allocators whose reserved memory is shown, as a,b; else two that did not "
              "record it:"))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(kNotEmpty)
      ->type_name("NAME");
  parser.add_option("--capacity", a.capacity, "The most that these may reserve, as 80GiB")
      ->check(kNotEmpty)
      ->type_name("SIZE");
}

void addOutput(CLI::App& parser, ReportArguments& a) {
  parser.add_option("-o,--output", a.output, "The file to write; - is the standard output")
      ->check(kNotEmpty)
      ->type_name("FILE");
  parser
      .add_option(
          "--format", a.format,
          "html: a page\nperfetto: a trace for ui.perfetto.dev\nspeedscope: a flame graph "
          "for speedscope.app\npickle: a snapshot for PyTorch's viewer\njson: what the page "
          "draws")
      ->check(kNotEmpty)
      ->type_name("FORMAT");
}

ExitStatus reportWhatIsGiven(const ReportArguments& a, Console& console) {
  const ReportSettings settings = settingsFrom(a);
  requireKnownBackend();
  std::vector<NamedFile> files;
  for (const std::string& file : a.files)
    files.push_back({"the file", file == "-" ? "/dev/stdin" : file});
  if (a.output != "-") requireApart(std::array{NamedFile{"--output", a.output}}, files);
  return runReport(settings, console);
}

}  // namespace

Command addReport(CLI::App& program) {
  CLI::App* parser = program.add_subcommand(
      "report", "Write a page that says who held the memory, and why it did not fit");
  const auto arguments = std::make_shared<ReportArguments>();
  addInput(*parser, *arguments);
  addContents(*parser, *arguments);
  addOutput(*parser, *arguments);
  parser->footer(
      "Exit status: 0 when the report is written, 1 when this build cannot make it or it\n"
      "cannot be written, 2 for bad usage or a bad file.");
  return {parser, [arguments](Console& console) { return reportWhatIsGiven(*arguments, console); }};
}

}  // namespace cistern::command
