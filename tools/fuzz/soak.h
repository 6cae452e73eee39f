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
  std::vector<std::string> without;  // values of --without, such as scan
  int most_failures = 10;            // soak() ends after this number of failures
};

// Checks random fusions, one per seed: without a device (checkWithoutDevice() in
// tools/random/run_case.h), then on the device, where it compares the results with the reference.
// Writes each failing fusion to the folder SoakOptions::out. Returns 1 if a fusion failed.
int soak(const SoakOptions& options);

// Writes SoakOptions::count random fusions for tests/goldens/torch_fusions.py, which runs them with
// PyTorch. Writes the inputs, the outputs of the reference and the bound of each element as .npy
// files. Returns 0.
int writeCases(const SoakOptions& options);

// Repeats the checks of soak() for a fusion that soak() has written, with the inputs and memory
// layouts that are in the same folder. Returns 1 if a check fails.
int replayCase(const std::string& file, const std::string& device);

}  // namespace heddle::fuzz
