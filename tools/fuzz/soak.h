#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::fuzz {

struct SoakOptions {
  double seconds = 10;
  int64_t count = 0;  // of fusions; 0: as many as the time allows
  uint64_t seed = 1;
  std::string device = "cpu";  // cpu, cuda, or none: only what needs no device
  std::string out = "fuzz-failures";
  bool reduces = true;
  std::vector<std::string> without;  // kinds of ops to leave out: scan, scatter, index, ...
  int most_failures = 10;
};

// Random fusions, seed after seed, on a device against the reference. One that fails is reduced and
// written; returns 1 when any did.
int soak(const SoakOptions& options);

// Fusions, inputs, outputs of the reference and the bounds of each element as .npy, for
// tests/goldens/torch_fusions.py.
int writeCases(const SoakOptions& options);

// One file that soak() wrote, laid out as it was.
int replayCase(const std::string& file, const std::string& device);

}  // namespace heddle::fuzz
