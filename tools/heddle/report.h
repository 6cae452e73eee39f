#pragma once

#include <string>
#include <vector>

#include "host/executable.h"
#include "tools/heddle/check.h"
#include "tools/tune/choices_file.h"

namespace heddle::tools {

// The results of a run, which rank 0 collects.
struct Report {
  std::string file;
  std::string device;
  std::string transport;
  int ranks = 1;
  std::vector<std::string> inputs;    // one line per input, such as "%T4: f32[16, 512, 4096]"
  std::vector<std::string> segments;  // one line per segment, such as "g0 kernel, ..."
  int64_t segmentations = 0;          // Prepared::segmentations
  int64_t split_calls = 0;            // Prepared::split_calls
  // The value of --overlap that tuning has chosen (describe() in tools/tune/tune_overlap.h); "":
  // the run has not chosen one.
  std::string overlap;
  // What --export writes: the candidates of kernels, the algorithms of library calls, and the
  // overlap. Rank 0 has those of all ranks.
  Choices choices;
  std::vector<std::string> output_names;
  std::vector<Gathered> outputs;
  // Per output: the tensor whose memory the output shares, for example "input %x"; empty: none.
  std::vector<std::string> aliased;
  // Per output: the descriptor of the tensor that rank 0 holds. TensorDesc::held is false if rank 0
  // is not in the mesh of the output.
  std::vector<TensorDesc> descs;
  std::vector<double> seconds;  // time of each timed run, including the work of the device
  double prepare_seconds = 0;   // time of the first run, which plans, compiles and runs
  host::Executable::Stats stats;
  std::string check_mode;  // empty: no check was requested
  std::string reference;   // file of the reference; empty: the fusion itself, or no check
  std::vector<OutputCheck> checks;
  // Per rank: the report of --check-numerics (Outputs::numerics()) about the first run in which the
  // rank wrote NaN or infinity; "": there was no such run. The run has already printed the report.
  // No entries: the check is off.
  std::vector<std::string> numerics;

  // Returns whether all checks passed, the copies of each output are equal on all ranks, and
  // --check-numerics has found nothing.
  bool passed() const;
};

// Return the report as text and as one JSON object (--json).
std::string reportText(const Report& report);
std::string reportJson(const Report& report);

}  // namespace heddle::tools
