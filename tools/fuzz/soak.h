#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::fuzz {

struct SoakOptions {
  double seconds = 10;
  int64_t count = 0;  // number of fusions; 0: as many as the time allows
  uint64_t seed = 1;
  std::string device = "cpu";  // cpu, cuda, or none: only checks that need no device
  std::string out = "fuzz-failures";
  bool reduces = true;               // true: also writes a reduced form of a failing fusion
  std::vector<std::string> without;  // kinds of ops that are not used: scan, scatter, index, ...
  int most_failures = 10;            // soak() ends after this number of failures
};

// Runs random fusions, one per seed, on a device and compares the results with the reference.
// Writes each failing fusion to the directory SoakOptions::out. Returns 1 if a fusion failed.
int soak(const SoakOptions& options);

// Writes random fusions for tests/goldens/torch_fusions.py. The inputs, the outputs of the
// reference and the bounds of each element are written as .npy files.
int writeCases(const SoakOptions& options);

// Runs a fusion that soak() wrote, with the inputs and memory layouts that soak() wrote beside it.
// Returns 1 if it fails.
int replayCase(const std::string& file, const std::string& device);

}  // namespace heddle::fuzz
