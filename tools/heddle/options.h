#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/device/device.h"
#include "host/passes/pipeline.h"

namespace heddle::tools {

// What the command line asked for. A field that a command does not use keeps its default.
struct Options {
  std::string file;
  std::string device;              // "cpu", "cuda", "null"; empty: the best present
  int ranks = 0;                   // in-process ranks; 0: one, or all of an mpirun job
  std::vector<std::string> set;    // t=16 for a size, S0=2.5 for a scalar
  std::vector<std::string> input;  // T4=x.npy
  std::string output_dir;
  uint64_t seed = 0;
  std::string check;      // "", "sample", "full"
  std::string reference;  // a fusion that the outputs are compared with instead
  int repeat = 1;
  bool json = false;
  bool verify = true;
  std::string overlap = "auto";   // off, auto or a number of chunks
  std::vector<std::string> skip;  // passes left out
  int64_t adversarial = -1;       // seed of the adversarial CPU order; -1: off
  double deadline = 10;           // seconds in which all ranks end when one is lost
  double patience = 600;          // seconds without movement; 0: for ever
  double start = 60;              // seconds for an mpirun job to come together; 0: for ever
  std::string inject;             // rank=2,instr=7,die
  std::string trace;              // a file for the timeline
  int64_t memory_limit = 0;       // bytes of each rank's CPU device; 0: what the machine has
  std::string stage = "all";
  std::string format = "text";
  std::string dump_dir;
  bool markdown = false;
};

// Each returns the exit code: 0 good, 1 the check failed. The caller's faults are UserErrors.
int runCommand(const Options& options);
int dumpCommand(const Options& options);
int verifyCommand(const Options& options);
int devicesCommand(const Options& options);
int opsCommand(const Options& options);

// --skip and --overlap, as the passes take them. `sizes`: those set, for the cost model.
host::PassOptions passOptions(const Options& options, const SizeBindings& sizes);

// The device asked for, or the best present.
host::DeviceKind chooseDevice(const std::string& asked);

}  // namespace heddle::tools
