#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "codegen/compile/image_cache.h"
#include "codegen/kernel.h"
#include "comm/process/process_info.h"
#include "host/executable.h"
#include "host/executable_parts.h"
#include "host/plan/bind_inputs.h"
#include "host/program/visit.h"
#include "host/tensor.h"
#include "host/text/program_text.h"
#include "ir/base/check.h"
#include "ir/system/files.h"
#include "ir/types/npy.h"
#include "tools/heddle/gather.h"
#include "tools/heddle/job.h"
#include "tools/heddle/job_end.h"
#include "tools/heddle/prepare.h"
#include "tools/heddle/reference.h"
#include "tools/heddle/report.h"
#include "tools/heddle/source.h"
#include "tools/profile/instruction_times.h"
#include "tools/profile/write_profile.h"
#include "tools/tune/tune_command.h"
#include "tools/tune/tune_overlap.h"

namespace heddle::tools {
namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<std::string> inputTexts(const Source& source, const host::Program& program,
                                    const Inputs& inputs) {
  std::vector<std::string> texts;
  const std::vector<InputSpec> specs = inputsOf(source);
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].is_scalar) {
      texts.push_back(fmt::format("%{}: {} = {}", specs[i].name, name(specs[i].tensor.dtype),
                                  toDouble(inputs.scalars[i])));
    } else if (inputs.tensors[i].data || std::holds_alternative<Fusion>(source)) {
      texts.push_back(fmt::format("%{}: {}{}", specs[i].name, name(specs[i].tensor.dtype),
                                  str(inputs.tensors[i].sizes)));
    } else {
      texts.push_back(fmt::format("%{}", specs[i].name));
    }
    if (const auto partial = partialOf(program, program.inputs[i])) {
      texts.back() += fmt::format(", given as parts; it is their {}", describe(*partial));
    }
  }
  return texts;
}

// Returns the tensor whose memory an output shares, as in "input %x" or "output %y". Returns "" if
// the output shares no memory.
std::string aliasedText(const host::Program& program,
                        const std::optional<host::AliasedTensor>& aliased) {
  if (!aliased) return {};
  const auto& list = aliased->is_input ? program.inputs : program.outputs;
  return fmt::format("{} %{}", aliased->is_input ? "input" : "output",
                     program.slots[list.at(aliased->index)].name);
}

// Returns the descriptor of an output. The descriptor of a scalar has no axes.
TensorDesc descOf(const host::Argument& output, const host::Slot& slot) {
  const auto* tensor = std::get_if<host::Tensor>(&output);
  return tensor == nullptr ? denseDesc(slot.tensor.dtype, {}) : tensor->desc;
}

void collectOutputs(const Rank& rank, const host::Program& program, const host::Outputs& outputs,
                    Report& report) {
  const comm::World::Task task(rank.world, comm::RankTask::CollectingOutputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const host::Slot& slot = program.slots[program.outputs[i]];
    Gathered all;
    if (const auto* tensor = std::get_if<host::Tensor>(&outputs[i])) {
      try {
        all = gatherOutput(*rank.world, host::toHost(*rank.device, *tensor), tensor->desc,
                           partialOf(program, program.outputs[i]));
      } catch (const std::bad_alloc&) {
        const TensorDesc whole = denseDesc(slot.tensor.dtype, tensor->desc.global);
        userError(
            "output %{}: out of memory: {}{} of {} bytes does not fit in the memory of this "
            "machine",
            slot.name, name(whole.dtype), str(whole.sizes), whole.allocBytes());
      }
    } else {
      HostTensor value(slot.tensor.dtype, {});
      value.set(0, std::get<Scalar>(outputs[i]));
      all = gatherOutput(*rank.world, value, denseDesc(slot.tensor.dtype, {}));
    }
    if (rank.rank != 0) continue;
    report.output_names.push_back(slot.name);
    report.descs.push_back(descOf(outputs[i], slot));
    report.aliased.push_back(aliasedText(program, outputs.aliased(i)));
    report.outputs.push_back(std::move(all));
  }
}

// The objects that a process creates once, before its ranks start.
struct Job : Prepared {
  std::optional<host::InjectedFault> fault;
  std::string reference_file;
  std::optional<Reference> reference;  // nullopt: the fusion itself
  std::unique_ptr<codegen::ImageCache> images;
  Choices choices;  // choices from the file of --choices
  // The programs among which chooseOverlap() chooses; empty: `program` is the only one.
  std::vector<OverlapCandidate> overlaps;
};

// Returns the settings that must be equal on all ranks. If they differed, the result could be
// wrong, or the job might not end.
std::map<std::string, std::string> sharedSettings(const Options& options) {
  std::map<std::string, std::string> settings = {
      {"--device", std::string(host::name(chooseDevice(options.device)))},
      {"--seed", std::to_string(options.seed)},
      {"--repeat", std::to_string(options.repeat)},
      {"--overlap", options.overlap}};
  if (!options.check.empty()) settings["--check"] = options.check;
  if (!options.trace.empty()) settings["--trace"] = "given";
  if (!options.profile.empty()) settings["--profile"] = "given";
  if (options.check_numerics) settings["--check-numerics"] = "given";
  settings["--tune"] = options.tune;
  if (options.choices_only) settings["--choices-only"] = "given";
  for (const auto& [key, parameters] : givenChoices(options)) {
    settings["--choices, key " + key] = parameters;
  }
  for (const std::string& pass : options.skip) settings["--skip " + pass] = "given";
  for (const std::string& each : options.force) settings["--force " + each] = "given";
  for (const std::string& input : options.donate) settings["--donate " + input] = "given";
  for (const std::string& set : options.set) {
    const size_t equals = std::min(set.find('='), set.size());
    settings["--set " + set.substr(0, equals)] = set.substr(std::min(equals + 1, set.size()));
  }
  for (const std::string& input : options.input) {
    settings["--input " + input.substr(0, input.find('='))] = "given";
  }
  return settings;
}

// Returns the file of the reference: the argument of --reference or, for a host program, the fusion
// with the same name in the same folder. Returns "" if there is no check, or if the source is a
// fusion that serves as its own reference.
std::string referenceOf(const Source& source, const Options& options) {
  if (options.check.empty()) {
    HEDDLE_USER_CHECK(options.reference.empty(), "--reference {}: it has no effect without --check",
                      options.reference);
    return "";
  }
  HEDDLE_USER_CHECK(options.device != "null", "--check: the null device computes nothing");
  if (!options.reference.empty() || std::holds_alternative<Fusion>(source)) {
    return options.reference;
  }
  const std::filesystem::path beside =
      std::filesystem::path(options.file).replace_extension(".fusion");
  std::error_code error;
  HEDDLE_USER_CHECK(std::filesystem::exists(beside, error) && beside != options.file,
                    "--check: {} is a host program, so it needs a reference; write a fusion that "
                    "computes the same, and give it with --reference FILE or save it as {}",
                    options.file, beside.string());
  return beside.string();
}

Job prepareJob(const Options& options, int ranks, comm::World& world) {
  std::optional<comm::World::Task> task(std::in_place, &world, comm::RankTask::Reading);
  Job job;
  job.source = readSource(options.file);
  HEDDLE_USER_CHECK(options.device != "null" || !options.check_numerics,
                    "--check-numerics: the null device computes nothing");
  job.choices = givenChoices(options);
  job.reference_file = referenceOf(job.source, options);
  if (!options.inject.empty()) job.fault = faultOf(options.inject, ranks);
  bindInputs(job, options);
  task.reset();
  task.emplace(&world, comm::RankTask::CompilingProgram);
  compileProgram(job, options, ranks);
  const bool at_instruction = job.fault && job.fault->task == comm::RankTask::None;
  if (at_instruction) checkInjected(*job.fault, job.program, job.inputs.sizes, ranks);
  if (!job.reference_file.empty()) {
    job.reference = readReference(job.reference_file, job.program, job.inputs, ranks);
  }
  // A fault or --force names an instruction or a kernel of one program, so a job with one of them
  // does not choose another program.
  const bool chooses = (options.tune != "off" || hasOverlap(job.choices)) &&
                       !options.overlap_given && ranks > 1 && !at_instruction &&
                       options.force.empty();
  if (chooses) job.overlaps = overlapCandidates(job, options, ranks);
  job.images = std::make_unique<codegen::ImageCache>();
  return job;
}

// Returns the program that all ranks run.
const host::Program& programFor(const Rank& rank, const Job& job, const Options& options,
                                Report& report) {
  if (job.overlaps.size() < 2) return job.program;
  OverlapOptions overlap;
  overlap.given = job.choices;
  overlap.given_only = options.choices_only;
  overlap.measures = options.tune != "off";
  overlap.again = options.tune == "full";
  overlap.at_line = [&](const host::Program& program, const std::function<void()>& work) {
    atLineOfRun(options.file, job.source, program, work);
  };
  const OverlapChoice choice = chooseOverlap(rank, job.overlaps, job.inputs, *job.images, overlap);
  if (rank.rank == 0) {
    report.overlap = describe(job.overlaps, choice);
    report.choices[choice.key] = std::string(kOverlap) + job.overlaps[choice.chosen].overlap;
  }
  return job.overlaps[choice.chosen].program;
}

// Stores in `report` what --check-numerics has found on each rank. All ranks must call this
// function.
void collectNumerics(const Rank& rank, const std::string& found, Report& report) {
  const comm::World::Task task(rank.world, comm::RankTask::CollectingOutputs);
  const std::vector<std::string> all = rank.world->exchange(found);
  if (rank.rank == 0) report.numerics = all;
}

void runRank(const Rank& rank, const Job& job, const host::Program& program, const Options& options,
             Report& report) {
  host::ExecutableOptions executable_options;
  executable_options.check_numerics = options.check_numerics;
  // prepareJob() has verified the program for all ranks, unless --no-verify is given.
  executable_options.verify = false;
  if (job.fault && job.fault->task == comm::RankTask::None) executable_options.inject = job.fault;
  executable_options.kernel_choices =
      choicesForRun(rank, program, job.inputs.sizes, job.choices, options, *job.images);
  executable_options.choices_only = options.choices_only;
  const host::Context context{rank.device, rank.world, job.images.get(), {}};
  host::ExecutableParts parts;
  parts.monitor = rank.monitor;
  host::Executable executable = parts.make(program, context, executable_options);
  std::vector<host::Argument> arguments = placeInputs(rank, executable.program(), job.inputs);

  // Begin the first run on all ranks together. Its time then excludes waiting for ranks that still
  // copy their inputs.
  rank.world->barrier();
  std::optional<host::Outputs> outputs;
  host::RunProfile profile;
  TimesByInstruction times;
  std::string numerics;  // report of the first run that wrote NaN or infinity
  host::RunOptions run_options;
  run_options.donated = donatedInputs(executable.program(), options);
  const bool changes_inputs = !executable.program().reuses.empty() || !options.donate.empty();
  const auto timedRun = [&] {
    // Destroy the outputs of the previous run first, so that only one set of outputs is in memory.
    // If a run changes its inputs, each run gets new inputs.
    if (outputs && changes_inputs) {
      outputs.reset();
      arguments = placeInputs(rank, executable.program(), job.inputs);
    }
    outputs.reset();
    const Clock::time_point start = Clock::now();
    outputs = executable.run(arguments, run_options);
    outputs->wait();
    const double passed = secondsSince(start);
    if (numerics.empty()) numerics = outputs->numerics();
    return passed;
  };
  const double first = timedRun();
  std::vector<double> seconds;
  for (int i = 0; i < options.repeat; ++i) {
    const bool is_traced = i + 1 == options.repeat && !options.trace.empty();
    if (is_traced || !options.profile.empty()) run_options.profile = &profile;
    seconds.push_back(timedRun());
    if (!options.profile.empty()) addRun(profile, times);
  }
  // Tell the job monitor before the exchanges below that this rank begins no more runs.
  rank.monitor->activity().endRuns();
  if (!options.trace.empty()) writeTimeline(rank, profile, options.trace);
  if (!options.profile.empty()) writeProfile(rank, *job.images, times, options.profile);
  if (options.check_numerics) collectNumerics(rank, numerics, report);
  if (rank.rank == 0) {
    report.device = rank.device->description();
    report.transport = rank.world->transport();
    report.ranks = rank.ranks;
    report.prepare_seconds = first;
    report.seconds = std::move(seconds);
    report.stats = executable.stats();
    report.choices.merge(executable.algorithmChoices());
    report.choices.merge(executable_options.kernel_choices);
  }
  if (rank.device->kind() != host::DeviceKind::Null) {
    collectOutputs(rank, executable.program(), *outputs, report);
  }
}

void writeOutputs(const std::string& folder, const Report& report) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  HEDDLE_USER_CHECK(!error, "--output-dir {}: {}", folder, error.message());
  for (size_t i = 0; i < report.outputs.size(); ++i) {
    writeNpy((std::filesystem::path(folder) / (report.output_names[i] + ".npy")).string(),
             report.outputs[i].whole);
  }
}

}  // namespace

int runCommand(const Options& options) {
  const auto taskFault = [&](int ranks) -> std::optional<host::InjectedFault> {
    if (options.inject.empty()) return std::nullopt;
    const host::InjectedFault fault = faultOf(options.inject, ranks);
    return fault.task == comm::RankTask::None ? std::nullopt : std::optional(fault);
  };
  const JobOptions job_options{options.device,
                               options.ranks,
                               options.adversarial,
                               options.memory_limit,
                               options.deadline,
                               options.patience,
                               options.start,
                               [&] { return sharedSettings(options); },
                               taskFault};
  Job job;
  Report report;
  report.file = options.file;
  bool prints = false;
  runJob(
      job_options,
      [&](int ranks, comm::World& world) -> const host::Program& {
        job = prepareJob(options, ranks, world);
        return job.program;
      },
      [&](const Rank& rank) {
        const host::Program& program = programFor(rank, job, options, report);
        atLineOfRun(options.file, job.source, program,
                    [&] { runRank(rank, job, program, options, report); });
        if (rank.rank == 0) prints = true;
      });
  if (!prints) return 0;  // another process of the job holds rank 0
  setProcessTask(comm::RankTask::Reporting);
  report.inputs = inputTexts(job.source, job.program, job.inputs);
  report.segments = job.segments;
  if (const auto* fusion = std::get_if<Fusion>(&job.source)) {
    // The names in the program may differ: the program may return the input to which it has copied
    // a result.
    for (size_t i = 0; i < report.output_names.size(); ++i) {
      report.output_names[i] = fusion->value(fusion->outputs()[i]).name;
    }
  }
  report.segmentations = job.segmentations;
  report.split_calls = job.split_calls;
  setProcessTask(comm::RankTask::WritingOutputs);
  if (!options.output_dir.empty()) writeOutputs(options.output_dir, report);
  if (!options.export_file.empty()) {
    writeFileOf(options.export_file, {printChoices(report.choices, report.device)});
  }
  setProcessTask(comm::RankTask::Checking);
  if (!options.check.empty()) {
    report.check_mode = options.check;
    report.reference = job.reference_file;
    CheckOptions check{options.check, options.check_memory};
    if (!options.json) {
      check.announce = [](const std::string& line) { fmt::print(stderr, "heddle: {}\n", line); };
    }
    const bool from_file = job.reference.has_value();
    report.checks =
        checkOutputs(from_file ? job.reference->fusion : std::get<Fusion>(job.source),
                     from_file ? job.reference->inputs : job.inputs, report.outputs, check);
  }
  setProcessTask(comm::RankTask::Reporting);
  if (options.time_passes) std::fputs(job.pass_times.table().c_str(), stderr);
  std::fputs((options.json ? reportJson(report) : reportText(report)).c_str(), stdout);
  setProcessTask(comm::RankTask::Leaving);
  return report.passed() ? 0 : 1;
}

}  // namespace heddle::tools
