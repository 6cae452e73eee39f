#pragma once

#include <string>
#include <vector>

#include "host/device/device_tensor.h"
#include "host/executable_parts.h"
#include "host/program/program.h"
#include "tools/bench/pass_times.h"
#include "tools/heddle/job.h"
#include "tools/heddle/options.h"
#include "tools/heddle/source.h"

namespace heddle::tools {

// A file that is compiled for a job, with the inputs of its runs.
struct Prepared {
  Source source;
  Inputs inputs;
  host::Program program;
  PassTimes pass_times;
  std::vector<std::string> segments;  // one line per segment of a fusion, such as "g0 kernel, ..."
  int64_t segmentations = 0;  // how often a fusion was segmented: 1, or 0 for a host program
  int64_t split_calls = 0;    // SegmentedFusion::split_calls of a fusion
};

// Fills `inputs`. Stores the sizes of the inputs as defaults in `source`, which the caller has
// read. Throws UserError if an input or a size is missing or wrong, for example if a guard of the
// fusion is false.
void bindInputs(Prepared& prepared, const Options& options);
// Fills `program` and, for a fusion, the members after it. Call this after bindInputs(). Applies
// --force. Verifies the program, unless the options forbid it. Throws UserError if the source
// cannot be compiled.
void compileProgram(Prepared& prepared, const Options& options, int ranks);

// Sets Kernel::candidate of the kernels that --force names, in a program and in the programs that
// it calls. Throws UserError if a value of --force is malformed, names an unknown kernel, or names
// a kernel for the second time. Does not check whether the kernel has the candidate; a run does.
void applyForced(host::Program& program, const std::vector<std::string>& force);

// Returns the fault of --inject SPEC. Throws UserError if `spec` is not valid, or if a job of
// `ranks` ranks cannot have the fault.
host::InjectedFault faultOf(const std::string& spec, int ranks);
// Throws UserError if the program has no instruction with the index in `fault`, or if the rank in
// `fault` issues nothing for this instruction. Instructions are counted after all calls are
// inlined. Call this on all ranks before anything runs, so that all ranks reject an invalid fault.
void checkInjected(const host::InjectedFault& fault, const host::Program& program,
                   const SizeBindings& sizes, int ranks);

// Returns the inputs of a run on this rank: copies the rank's block of every input to its device.
// If an input is partial, copies the rank's part of the block (partOf() in tools/heddle/partial.h).
// Scalars stay in host memory, and so do inputs whose values occur in sizes or offsets.
std::vector<host::Argument> placeInputs(const Rank& rank, const host::Program& program,
                                        const Inputs& inputs);

// Returns the positions of the inputs that --donate names. Throws UserError if the program has no
// such input.
std::vector<size_t> donatedInputs(const host::Program& program, const Options& options);

}  // namespace heddle::tools
