// --overflow --json: one object a line for each program, size of the device and rule.
// docs/replay.md lists the keys.
#include <nlohmann/json.hpp>

#include "interop/command/overflow/overflow_printer.hpp"

namespace cistern::command {
namespace {

using Json = nlohmann::ordered_json;

class OverflowJson final : public OverflowPrinter {
 public:
  OverflowJson(std::ostream& out, const ReplaySettings& settings)
      : out_(out), settings_(settings) {}

  void program(const OverflowProgram& program) override { program_ = program; }
  void row(const OverflowCase& found) override {
    for (const OverflowRun& run : found.runs) print(found, run);
  }

 private:
  void print(const OverflowCase& found, const OverflowRun& run) {
    const BusBytes bytes = run.total();
    Json line;
    line["trace"] = program_.name;
    line["file"] = program_.file.empty() ? Json(nullptr) : Json(program_.file);
    line["need_bytes"] = program_.need;
    line["share"] = found.share;
    line["capacity_bytes"] = found.capacity;
    line["iterations"] = program_.starts.size();
    line["short_iterations"] = found.bound.shortIterations();
    line["bound_bytes"] = found.bound.total();
    line["bound_worst_bytes"] = found.bound.worst();
    line["bound_once_bytes"] = found.bound.once;
    line["rule"] = run.rule;
    line["ok"] = run.ok();
    const auto served = [&](std::uint64_t value) { return run.ok() ? Json(value) : Json(nullptr); };
    line["bus_bytes"] = served(bytes.total());
    line["moved_bytes"] = served(bytes.moved);
    line["short_lived_bytes"] = served(bytes.of_short_lives);
    line["worst_bytes"] = served(run.worst());
    line["failure"] = run.failure;
    line["conf"] = settings_.options.conf();
    line["gpu_lag_us"] = settings_.gpu_lag_us;
    line["version"] = CISTERN_VERSION;
    const bool ascii_only = true;  // nothing of a name acts on a terminal, and nothing is lost
    out_ << line.dump(-1, ' ', ascii_only, Json::error_handler_t::replace) << std::endl;
  }

  std::ostream& out_;
  const ReplaySettings settings_;
  OverflowProgram program_;
};

}  // namespace

std::unique_ptr<OverflowPrinter> overflowJson(std::ostream& out, const ReplaySettings& settings) {
  return std::make_unique<OverflowJson>(out, settings);
}

}  // namespace cistern::command
