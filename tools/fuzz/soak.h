#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::fuzz {

struct SoakOptions {
  double seconds = 10;
  int64_t count = 0;  // number of fusions; 0: as many as `seconds` allow
  uint64_t seed = 1;
  std::string device = "cpu";  // cpu, cuda, or none: only checks that need no device
  std::string out = "fuzz-failures";
  bool reduces = true;               // true: also writes a reduced form of a failing fusion
  std::vector<std::string> without;  // values of --without, such as scan
  int most_failures = 10;            // soak() ends after this number of failures
};

// Checks random fusions, one per seed: without a device (checkWithoutDevice() in
// tools/random/run_case.h), then on the device, where it compares the results with the reference.
// Writes each failing fusion to the folder SoakOptions::out. Ends after SoakOptions::seconds or, if
// SoakOptions::count is not 0, after this number of fusions. Also ends after
// SoakOptions::most_failures failures. Returns 1 if a fusion failed, otherwise 0.
int soak(const SoakOptions& options);

// Writes SoakOptions::count random fusions for tests/goldens/torch_fusions.py, which runs them with
// PyTorch. Writes the inputs, the outputs of the reference, and the error bound of each output
// element (tools/random/bounds.h) as .npy files. Returns 0.
int writeCases(const SoakOptions& options);

// Repeats the checks of soak() for a fusion that soak() or writeCases() has written, with the
// inputs and memory layouts in the same folder. Returns 1 if a check fails, otherwise 0.
int replayCase(const std::string& file, const std::string& device);

}  // namespace heddle::fuzz
