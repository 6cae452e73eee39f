#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/device/device.h"
#include "host/passes/pipeline.h"
#include "tools/bench/pass_times.h"

namespace heddle::tools {

// The values of the command line. A field that a command does not use keeps its default.
struct Options {
  std::string file;
  std::vector<std::string> files;  // tune: the files
  // "cpu", "cuda", "null"; empty: cuda if there is a GPU, else cpu. Exception: for dump, an empty
  // device is cpu.
  std::string device;
  int ranks = 0;  // ranks in this process; 0: one rank, or all ranks of an mpirun job
  std::vector<std::string> set;    // sizes and scalars, such as t=16 and S0=2.5
  std::vector<std::string> input;  // tensors in files, such as T4=x.npy
  // Names of inputs whose memory a run may reuse.
  std::vector<std::string> donate;
  std::string output_dir;     // folder for the outputs; empty: outputs are not written
  uint64_t seed = 0;          // seed of random inputs
  std::string check;          // "sample", "full"; empty: no check
  double check_memory = 2e9;  // CheckOptions::most_bytes (tools/heddle/check.h)
  // File of the fusion to compare with. Empty: the fusion itself or, for a host program, the fusion
  // with the same name in the same folder.
  std::string reference;
  int repeat = 1;                  // number of timed runs after the first run
  int timed_runs = 20;             // bench: number of runs with measurements
  bool roofline = false;           // bench: compare with a copy of the same bytes
  bool csv = false;                // bench, tune: print comma-separated values
  bool json = false;               // run, bench: print one JSON object
  bool verify = true;              // verify the compiled host program
  std::string overlap = "auto";    // off, auto or a number of chunks
  bool overlap_given = false;      // true: the user has given --overlap
  std::vector<std::string> skip;   // names of passes to skip
  std::vector<std::string> force;  // candidates of kernels, such as k3=2
  bool verify_each = false;        // verify after every pass
  bool time_passes = false;        // print the seconds of every pass
  int64_t adversarial = -1;        // seed of the CPU test mode that delays work; -1: off
  double deadline = 10;            // seconds within which all ranks end after one is lost
  double patience = 600;           // seconds without progress until the job ends; 0: no limit
  double start = 60;               // seconds within which an mpirun job must start; 0: no limit
  std::string inject;              // fault to inject, such as rank=2,instr=7,die
  std::string trace;               // file for the timeline
  std::string profile;             // file for the times of the instructions
  std::string tune = "off";        // "off", "auto", "full"
  bool tunes_again = false;        // tune: also measure kernels whose choice is stored
  std::string choices;             // file with choices of candidates
  bool choices_only = false;       // a missing choice in this file is an error
  std::string export_file;         // run, tune: file for the choices
  bool check_numerics = false;     // report the first instruction that wrote NaN or infinity
  int64_t memory_limit = 0;        // bytes of each rank's CPU device; 0: no limit
  std::string stage = "all";       // dump: the stage to show
  std::string format = "text";     // dump: text, dot or json
  std::string dump_dir;            // folder for the parts of a dump; empty: stdout
  bool markdown = false;           // ops: print the text of docs/ops.md
};

// Each command returns the exit code. runCommand() returns 1 if Report::passed() is false.
// Otherwise the exit code is 0. A command throws UserError for a fault of the caller.
int runCommand(const Options& options);
int dumpCommand(const Options& options);
int verifyCommand(const Options& options);
int devicesCommand(const Options& options);
int opsCommand(const Options& options);

// Converts --skip, --overlap, --verify-each and --time-passes to options of the passes. `sizes` are
// the sizes of the run, which the cost model of --overlap needs. If --time-passes is given and
// `times` is not nullptr, each pass adds its seconds to `times`, which must outlive the result.
host::PassOptions passOptions(const Options& options, const SizeBindings& sizes,
                              PassTimes* times = nullptr);

// Returns the device with the name `asked`. If `asked` is empty, returns cuda if there is a GPU,
// otherwise cpu. Throws UserError if `asked` is cuda and there is no GPU.
host::DeviceKind chooseDevice(const std::string& asked);

}  // namespace heddle::tools
