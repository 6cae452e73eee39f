#include "tools/tune/tune_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <sstream>

#include "codegen/compile/image_cache.h"
#include "host/device/choice_cache.h"
#include "host/plan/bind_inputs.h"
#include "host/program/visit.h"
#include "ir/base/check.h"
#include "ir/system/files.h"
#include "tools/arguments/arguments.h"
#include "tools/heddle/job_end.h"
#include "tools/heddle/prepare.h"
#include "tools/tune/tune.h"
#include "tools/tune/tune_report.h"

namespace heddle::tools {
namespace {

constexpr const char* kTerms =
    "Example:\n"
    "  heddle tune examples/softmax.fusion --set rows=4096 --export choices.txt\n"
    "  heddle run examples/softmax.fusion --set rows=4096 --choices choices.txt\n"
    "Measures the candidates of each kernel (`heddle dump --stage candidates`) for the given "
    "sizes.\n"
    "The program does not run: each kernel runs alone, on random inputs. With --ranks N, it "
    "measures\n"
    "the kernels of all ranks of a job of N ranks, on one device. The choices are stored next to\n"
    "the compiled kernels, and `heddle run --tune auto` finds them there.\n"
    "With several files, --set must fit each of them.\n"
    "A candidate is left out if it does not compile, does not run, spills many registers, or "
    "gives\n"
    "wrong results. docs/tuning.md has the exact rules. The times are medians. Before a run, a "
    "write\n"
    "of 256 MiB (CUDA) or 32 MiB (CPU) replaces the contents of the caches.";

// Returns the store of choices, which is in the folder of the compiled kernels.
host::ChoiceCache openStore() {
  return {codegen::ImageCache::defaultFolder(), "candidates of kernels"};
}

void requireCompiler(const host::Device& device) {
  HEDDLE_USER_CHECK_CODE(Unsupported, device.compiler() != nullptr,
                         "tuning needs a compiler: without one, kernels have no candidates{}",
                         device.whyNoCompiler().empty() ? "" : "; " + device.whyNoCompiler());
}

// Tunes a program and stores the new choices. Sets TuneOptions::find to a function that finds
// choices in `given` and in the store. Throws UserError if the device has no compiler.
std::vector<TunedKernel> tuneAndStore(const host::Program& program, const SizeBindings& sizes,
                                      int ranks, host::Device& device, const Choices& given,
                                      codegen::ImageCache& images, TuneOptions options) {
  requireCompiler(device);
  host::ChoiceCache store = openStore();
  options.find = [&](const std::string& key) {
    const auto found = given.find(key);
    return found != given.end() ? std::optional(found->second) : store.find(key);
  };
  const host::Program inlined = host::inlineCalls(host::concretized(program, ranks));
  std::vector<TunedKernel> kernels = tune(inlined, sizes, ranks, device, images, options);
  // Choices that had to agree with another rank are not stored, because they may not be the best
  // choices.
  for (const TunedKernel& kernel : kernels) {
    const bool is_new = kernel.origin == TunedKernel::Origin::Measured ||
                        kernel.origin == TunedKernel::Origin::Single;
    if (is_new && options.agreed.empty()) {
      store.put(kernel.key, kernel.rows.at(kernel.chosen).parameters);
    }
  }
  return kernels;
}

// Converts the choices of rank 0 to a message and back. Each choice has one line.
std::string encodeChoices(const std::vector<KeyedChoice>& choices) {
  std::string text;
  for (const auto& [key, parameters] : choices) text += fmt::format("{} {}\n", key, parameters);
  return text;
}

std::vector<KeyedChoice> decodeChoices(const std::string& text) {
  std::vector<KeyedChoice> choices;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.find(' ');
    HEDDLE_CHECK(space != std::string::npos, "a choice of rank 0 is '{}'", line);
    choices.push_back({line.substr(0, space), line.substr(space + 1)});
  }
  return choices;
}

}  // namespace

void addTune(CLI::App& app, Options& o) {
  CLI::App* tune = app.add_subcommand("tune", "Measures the candidates of each kernel.");
  tune->footer(kTerms);
  tune->add_option("FILE", o.files, "fusions (.fusion) or host programs (.hostir)")->required();
  addCompilation(*tune, o);
  addRanks(*tune, o);
  tune->add_option("--device", o.device, "cpu or cuda; default: cuda if there is a GPU, else cpu")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  tune->add_option("--seed", o.seed, "seed for the random inputs");
  tune->add_flag("--again", o.tunes_again, "also measure kernels whose choice is stored");
  tune->add_option("--export", o.export_file, "write the choices into this text file");
  tune->add_flag("--csv", o.csv, "print comma-separated values with a header");
}

void addChoices(CLI::App& command, Options& o) {
  command
      .add_option("--tune", o.tune,
                  "how to choose the candidate of each kernel. off: the first candidate. auto: the "
                  "stored choice; if there is none and the time model expects different times, "
                  "measure the candidates before the run and use the fastest. full: measure the "
                  "candidates of all kernels. With several ranks, auto and full also measure how "
                  "communication should overlap computation. Under mpirun of Open MPI, write "
                  "--tune=auto as one "
                  "word")
      ->check(CLI::IsMember({"off", "auto", "full"}));
  command.add_option("--choices", o.choices,
                     "a file of --export with choices to use, without measuring");
  command.add_flag("--choices-only", o.choices_only,
                   "with --choices: a kernel without a choice is an error; so is a missing choice "
                   "for a library call or for the overlap, if the file has choices of this kind");
  command.add_option("--export", o.export_file,
                     "with --tune=auto or full: write the choices of this run into this text file: "
                     "candidates of kernels, algorithms of library calls, and the overlap");
}

Choices givenChoices(const Options& options) {
  HEDDLE_USER_CHECK(!options.choices_only || !options.choices.empty(),
                    "--choices-only: it has no effect without --choices");
  HEDDLE_USER_CHECK(!options.choices_only || options.tune == "off",
                    "--choices-only: it contradicts --tune {}", options.tune);
  HEDDLE_USER_CHECK(options.tune == "off" || options.device != "null",
                    "--tune: the null device runs no kernels");
  HEDDLE_USER_CHECK(options.export_file.empty() || options.tune != "off",
                    "--export: it needs --tune=auto or --tune=full");
  return options.choices.empty() ? Choices() : readChoices(options.choices);
}

namespace {

// Adds the algorithms of library calls in `given` to `choices`.
Choices withAlgorithms(Choices choices, const Choices& given) {
  for (const auto& [key, choice] : given) {
    if (choice.starts_with(host::kAlgorithm)) choices.emplace(key, choice);
  }
  return choices;
}

}  // namespace

Choices choicesForRun(const Rank& rank, const host::Program& program, const SizeBindings& sizes,
                      const Choices& given, const Options& options, codegen::ImageCache& images) {
  if (options.tune == "off") return given;
  const comm::World::Task task(rank.world, comm::RankTask::TuningKernels);
  TuneOptions tuning;
  tuning.seed = options.seed;
  tuning.measured = options.tune == "full" ? Measured::All : Measured::Different;
  // Show the job monitor that this rank makes progress.
  tuning.on_kernel = [&] {
    const comm::World::Task step(rank.world, comm::RankTask::TuningKernels);
  };
  const auto tuned = [&] {
    return tuneAndStore(program, sizes, rank.ranks, *rank.device, given, images, tuning);
  };
  if (rank.rank == 0) {
    const std::vector<KeyedChoice> mine = keyedChoicesOf(tuned());
    rank.world->exchange(encodeChoices(mine));
    Choices choices;
    for (const auto& [key, parameters] : mine) choices[key] = parameters;
    return withAlgorithms(std::move(choices), given);
  }
  tuning.agreed = decodeChoices(rank.world->exchange("").at(0));
  return withAlgorithms(tuning.agreed.empty() ? Choices() : choicesOf(tuned()), given);
}

namespace {

// Compiles a file. If there are several files, an error message about an option begins with the
// path of the file.
Prepared prepareFile(const Options& options, const std::string& path, int ranks) {
  Options of_file = options;
  of_file.file = path;
  Prepared prepared;
  try {
    prepared.source = readSource(path);
    bindInputs(prepared, of_file);
    compileProgram(prepared, of_file, ranks);
  } catch (const UserError& error) {
    const std::string message = error.what();
    if (options.files.size() == 1 || !message.starts_with("--")) throw;
    throw withText(error, fmt::format("{}: {}", path, message));
  }
  return prepared;
}

}  // namespace

int tuneCommand(const Options& options) {
  const int ranks = options.ranks > 0 ? options.ranks : 1;
  std::vector<Prepared> prepared;
  for (const std::string& path : options.files) {
    prepared.push_back(prepareFile(options, path, ranks));
  }
  const std::unique_ptr<host::Device> device = makeDevice(chooseDevice(options.device), {}, 0);
  codegen::ImageCache images;
  TuneOptions tuning;
  tuning.seed = options.seed;
  tuning.measured = options.tunes_again ? Measured::All : Measured::Unknown;
  std::vector<TunedFile> tuned;
  Choices choices;
  const auto print = [](const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  };
  if (options.csv) print(tuneCsvHeader());
  // Print the results of a file before tuning the next file, because tuning can take minutes.
  for (size_t i = 0; i < prepared.size(); ++i) {
    const std::string& path = options.files[i];
    tuned.push_back({path, inFile(path, prepared[i].source, [&] {
                       return tuneAndStore(prepared[i].program, prepared[i].inputs.sizes, ranks,
                                           *device, {}, images, tuning);
                     })});
    choices.merge(choicesOf(tuned.back().kernels));
    print(options.csv ? tuneCsv(tuned.back()) : tuneText(tuned.back(), prepared.size() > 1));
  }
  if (!options.export_file.empty()) {
    writeFileOf(options.export_file, {printChoices(choices, device->description())});
  }
  setProcessTask(comm::RankTask::Reporting);
  std::fputs(tuneSummary(tuned).c_str(), options.csv ? stderr : stdout);
  return 0;
}

}  // namespace heddle::tools
