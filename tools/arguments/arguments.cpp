#include "tools/arguments/arguments.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "ir/base/check.h"
#include "tools/heddle/options.h"
#include "tools/tune/tune_command.h"

namespace heddle::tools {
namespace {

CLI::Validator atLeast(int64_t least) {
  return CLI::Validator(
      [least](std::string& text) {
        int64_t value = 0;
        const bool is_number = CLI::detail::lexical_cast(text, value);
        return is_number && value >= least
                   ? std::string()
                   : fmt::format("{} is not an integer of at least {}", text, least);
      },
      "");
}

}  // namespace

void addCompilation(CLI::App& app, Options& o) {
  app.add_option("--set", o.set, "a size or a scalar: t=16, S0=2.5; may be repeated");
  app.add_option("--skip", o.skip, "leave out a pass by name; may be repeated");
  app.add_option("--force", o.force,
                 "use a candidate for a kernel of the host program, by its index or by parameters: "
                 "k3=2, \"k3=loops unroll=2\"; may be repeated; `heddle dump --stage candidates` "
                 "lists the candidates");
  app.add_option(
         "--overlap", o.overlap,
         "how communication overlaps computation: off; auto, which splits matrix products and "
         "the collectives next to them into chunks if the cost model expects a gain; or the "
         "number of chunks")
      ->check(CLI::IsMember({"off", "auto"}) |
              CLI::Range(int64_t{1}, host::PassOptions::kMostChunks))
      ->each([&o](const std::string&) { o.overlap_given = true; });
}

void addSource(CLI::App& app, Options& o) {
  app.add_option("FILE", o.file, "a fusion (.fusion) or a host program (.hostir)")->required();
  addCompilation(app, o);
}

void addFile(CLI::App& app, Options& o) {
  addSource(app, o);
  addRanks(app, o);
}

void addRanks(CLI::App& app, Options& o) {
  app.add_option("--ranks", o.ranks, "ranks in this process (default 1; under mpirun: the job)")
      ->check(CLI::Range(1, 1024));
}

void addInputs(CLI::App& app, Options& o) {
  app.add_option("--input", o.input,
                 "a tensor from a file: T4=x.npy; may be repeated; other tensors are filled "
                 "from the seed");
  app.add_option("--seed", o.seed, "seed for the inputs that are not given");
}

void addPassChecks(CLI::App& app, Options& o) {
  app.add_flag("--verify-each", o.verify_each,
               "verify after every pass, and name the pass that broke the program");
  app.add_flag("--time-passes", o.time_passes,
               "print the seconds of every compiler pass on standard error");
}

void addRun(CLI::App& app, Options& o) {
  CLI::App* run = app.add_subcommand("run", "Runs a fusion or a host program.");
  run->footer(
      "Example:\n"
      "  heddle run examples/softmax.fusion --device cpu --set rows=8 --check=full\n"
      "  mpirun -n 2 heddle run examples/tp_mlp.fusion --device cpu --check\n"
      "  heddle run examples/tp_mlp.fusion --ranks 2 --trace out.json   (open it in "
      "ui.perfetto.dev)\n"
      "  mpirun -n 3 heddle run examples/tp_mlp.fusion --device cpu --inject rank=2,instr=7,die\n"
      "Ranks report their progress to each other. If a rank fails, is killed or stopped, or "
      "leaves\n"
      "during a run, the other ranks end within the deadline. Each of them prints which rank was\n"
      "lost, where, and why.");
  addFile(*run, o);
  addPassChecks(*run, o);
  run->add_option("--device", o.device,
                  "cpu, cuda or null; default: cuda if there is a GPU, else cpu")
      ->check(CLI::IsMember({"cpu", "cuda", "null"}));
  addInputs(*run, o);
  run->add_option("--output-dir", o.output_dir, "write every output as NAME.npy into this folder");
  // Make --check a flag, so that `--check FILE` does not take the file as its value.
  run->add_flag("--check{sample}", o.check,
                "compare with the reference: --check=full, or --check for a sample of elements")
      ->check(CLI::IsMember({"full", "sample"}));
  run->add_option("--check-memory", o.check_memory,
                  "with --check=full: bytes of reference values that are computed at once (default "
                  "2e9); larger outputs are compared in slices")
      ->check(CLI::PositiveNumber);
  run->add_option(
      "--reference", o.reference,
      "with --check: the fusion to compare with; it has inputs of the same names and the "
      "same outputs; default for a host program: the fusion of the same name in the "
      "same folder");
  run->add_option("--donate", o.donate,
                  "inputs, as in x,y: outputs and temporaries may use their memory, so their "
                  "values are lost")
      ->delimiter(',');
  run->add_option("--repeat", o.repeat, "number of timed runs after the first run")
      ->check(atLeast(1));
  run->add_flag("--json", o.json, "print one JSON object instead of text");
  run->add_flag("!--no-verify", o.verify, "run a program even if verify rejects it");
  run->add_option("--adversarial", o.adversarial,
                  "CPU: delay work in a random order with this seed, as long as dependencies allow")
      ->check(atLeast(0));
  run->add_option("--deadline", o.deadline,
                  "seconds within which all ranks end after one of them is lost (default 10)")
      ->check(CLI::PositiveNumber);
  run->add_option(
         "--patience", o.patience,
         "seconds without progress on any rank after which the job ends, for example because "
         "a rank stalls (default 600, 0: never)")
      ->check(CLI::NonNegativeNumber);
  run->add_option("--start-limit", o.start,
                  "seconds within which all ranks of the job must start (default 60, 0: no limit)")
      ->check(CLI::NonNegativeNumber);
  run->add_option(
      "--inject", o.inject,
      "inject a fault when rank R issues instruction I: rank=R,instr=I,KIND with KIND die, throw, "
      "stall, delay=5s or corrupt; or when it begins a task outside of its runs: "
      "rank=R,task=T,KIND "
      "with T read, compile, settings, programs, communicators, inputs, prepare, algorithms, "
      "tune, outputs, timeline or leave. A rank that stalls looks like one that computes for a "
      "long "
      "time: the job ends after --patience seconds, not after the deadline");
  run->add_option("--trace", o.trace,
                  "write one timeline of the last run of all ranks (Chrome JSON) into this file");
  run->add_option(
      "--profile", o.profile,
      "write a table of all timed runs into this file: per rank and instruction, the count, the "
      "total and the median time, the bytes, and the fractions of the copy bandwidth and of the "
      "peak rate of matrix products (CSV; the guide explains the columns). The time of the runs "
      "includes the recording");
  run->add_flag("--check-numerics", o.check_numerics,
                "inspect the tensors of every kernel, library call, copy and collective; report "
                "the first instruction that wrote NaN or infinity, and exit with 1 if there is "
                "one. Every tensor is read again, on CUDA after a copy to the host");
  addChoices(*run, o);
  run->add_option("--memory-limit", o.memory_limit,
                  "CPU: bytes that each rank's device may hold, inputs included")
      ->check(atLeast(1));
}

void addDump(CLI::App& app, Options& o) {
  CLI::App* dump = app.add_subcommand("dump", "Shows the stages of compiling a file.");
  dump->footer(
      "Example:\n  heddle dump examples/softmax.fusion --stage segments\n"
      "  heddle dump examples/tp_mlp.fusion --ranks 2 --stage host --format json");
  addFile(*dump, o);
  addPassChecks(*dump, o);
  dump->add_option("--stage", o.stage,
                   "which stage; all: every stage that the file has, except candidates")
      ->check(CLI::IsMember({"fusion", "concretized", "segments", "schedule", "kernel",
                             "candidates", "host", "late", "all"}));
  dump->add_option("--format", o.format, "text, dot (segments only) or json")
      ->check(CLI::IsMember({"text", "dot", "json"}));
  dump->add_option("--device", o.device, "target of the kernels: cpu or cuda (default cpu)")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  dump->add_option("--dump-dir", o.dump_dir,
                   "write one file per stage, kernel and rank into this folder");
}

}  // namespace heddle::tools
