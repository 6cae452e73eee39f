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

// Writes SoakOptions::count random fusions for tests/goldens/torch_fusions.py. Writes the inputs,
// the outputs of the reference and the bound of each element as .npy files. Returns 0.
int writeCases(const SoakOptions& options);

// Runs a fusion that soak() has written, with the inputs and memory layouts that soak() has written
// to the same folder. Returns 1 if it fails.
int replayCase(const std::string& file, const std::string& device);

}  // namespace heddle::fuzz
