// `cistern generate`: writes made-up programs as traces, for other readers of traces.
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "interop/command/commands.hpp"
#include "interop/command/environment.hpp"
#include "interop/command/replay/progress_bar.hpp"
#include "interop/command/writable.hpp"
#include "interop/programs/generate.hpp"
#include "interop/recording/formats/write_trace.hpp"

namespace cistern::command {
namespace {

struct GenerateArguments {
  std::vector<std::string> programs;
  std::string folder = ".";
};

std::vector<programs::Recipe> recipesOf(const GenerateArguments& a) try {
  std::vector<programs::Recipe> recipes;
  for (const std::string& text : a.programs) {
    const std::vector<programs::Recipe> more = programs::parseRecipes(text);
    recipes.insert(recipes.end(), more.begin(), more.end());
  }
  return recipes;
} catch (const InvalidArgument& error) {
  throw UsageError(error.what());
}

std::string fileOf(const programs::Recipe& recipe, const GenerateArguments& a) {
  std::string name = recipe.name();
  std::replace(name.begin(), name.end(), ':', '-');
  return (std::filesystem::path(a.folder) / (name + ".trace.gz")).string();
}

ExitStatus generateAll(const GenerateArguments& a, Console& console) {
  if (a.programs.empty())
    throw UsageError("generate needs a kind of program and seeds, as train:1");
  requireKnownBackend();
  Progress progress(console);
  const std::vector<programs::Recipe> recipes = recipesOf(a);
  for (const programs::Recipe& recipe : recipes)
    requireApart(std::array{NamedFile{"the program " + recipe.name(), fileOf(recipe, a)}});
  for (const programs::Recipe& recipe : recipes) {
    const std::string path = fileOf(recipe, a);
    progress.show(double(&recipe - recipes.data()) / double(recipes.size()), recipe.name());
    recording::writeTrace(programs::generate(recipe), path);
    progress.clear();
    console.out << path << '\n';
  }
  return kDone;
}

}  // namespace

Command addGenerate(CLI::App& program) {
  CLI::App* parser = program.add_subcommand(
      "generate", "Write programs that are made up as traces, and print their names");
  const auto arguments = std::make_shared<GenerateArguments>();
  parser
      ->add_option("program", arguments->programs,
                   "KIND:SEED or KIND:FROM-TO, and settings: see --generate of `cistern replay`")
      ->type_name("KIND:SEEDS");
  parser->add_option("--to", arguments->folder, "The folder for KIND-SEED.trace.gz; else here")
      ->check(kNotEmpty)
      ->type_name("FOLDER");
  return {parser, [arguments](Console& console) { return generateAll(*arguments, console); }};
}

}  // namespace cistern::command
