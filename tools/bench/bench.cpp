#include "tools/bench/bench.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "tools/bench/bench_report.h"
#include "tools/bench/measure.h"
#include "tools/heddle/job.h"
#include "tools/heddle/job_end.h"
#include "tools/heddle/prepare.h"
#include "tools/tune/tune_command.h"

namespace heddle::tools {
namespace {

constexpr const char* kTerms =
    "Example:\n"
    "  heddle bench examples/softmax.fusion --set rows=4096 --roofline\n"
    "The program runs on one rank: 3 times without and --repeat times with measurements. Each row\n"
    "is an instruction that launches a kernel, calls a library, copies or communicates.\n"
    "  us         microseconds on the device: sum over the executions in one run; median of these\n"
    "             sums over the runs\n"
    "  bytes      bytes of the memory that the instruction reads and writes in one run, without\n"
    "             workspaces; one execution counts each memory range once\n"
    "  of_copy    GB/s of the instruction, divided by the copy bandwidth\n"
    "  total      time from the begin of the first instruction to the end of the last one\n"
    "The copy bandwidth is the number of bytes that y = neg(x) reads and writes per second. x has\n"
    "256 MiB on CUDA and 64 MiB on a CPU. The copy runs before every run of the program. On CUDA "
    "it\n"
    "also removes the inputs from the L2 cache, because it is larger than the L2 cache.\n"
    "With --roofline:\n"
    "  floor_us   time of a copy of the same number of bytes, at the copy bandwidth\n"
    "  limit      memory: the time differs from the floor by at most 15 %; cache: the time is\n"
    "             shorter, so caches deliver a part of the bytes; not memory: the time is longer;\n"
    "             unknown: the instruction has no bytes\n"
    "On CUDA only; for an instruction with several launches, + joins their values:\n"
    "  grid, block   blocks of the launch, and threads per block\n"
    "  registers     registers per thread\n"
    "  local_bytes   local memory per thread: spilled registers and local arrays\n"
    "  shared_bytes  shared memory per block\n"
    "  occupancy     active warps on an SM, divided by the most warps that an SM can hold\n"
    "Each time on CUDA is the time between two events, so it includes their overhead.";

BenchReport reportOf(const Options& options, Prepared& prepared) {
  prepared.source = readSource(options.file);
  bindInputs(prepared, options);
  compileProgram(prepared, options, 1);
  const host::DeviceKind kind = chooseDevice(options.device);
  const std::unique_ptr<host::Device> device = makeDevice(kind, {}, 0);
  BenchReport report;
  report.file = options.file;
  report.device = device->description();
  report.runs = options.timed_runs;
  report.is_gpu = kind == host::DeviceKind::Cuda;
  report.roofline = options.roofline;
  codegen::ImageCache images;
  const Choices choices = givenChoices(options);
  inFile(options.file, prepared.source, [&] {
    report.measurements = measure(prepared, *device, images, choices, options.timed_runs);
  });
  return report;
}

}  // namespace

void addBench(CLI::App& bench, Options& o) {
  bench.footer(kTerms);
  bench.add_option("--device", o.device, "cpu or cuda; default: cuda if there is a GPU, else cpu")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  bench.add_option("--repeat", o.timed_runs, "number of timed runs (default 20)")
      ->check(CLI::Range(1, 1000000));
  bench.add_option("--choices", o.choices, "a file of `heddle tune --export` with choices to use");
  bench.add_flag("--roofline", o.roofline,
                 "add the time of a copy of the same bytes, and whether memory is the limit");
  CLI::Option* csv = bench.add_flag("--csv", o.csv, "print comma-separated values with a header");
  bench.add_flag("--json", o.json, "print one JSON object instead of text")->excludes(csv);
}

int benchCommand(const Options& options) {
  Prepared prepared;
  const BenchReport report = reportOf(options, prepared);
  setProcessTask(comm::RankTask::Reporting);
  if (options.time_passes) std::fputs(prepared.pass_times.table().c_str(), stderr);
  const std::string text = options.json  ? benchJson(report)
                           : options.csv ? benchCsv(report)
                                         : benchText(report);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace heddle::tools
