#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/device/device.h"
#include "host/run/profile/run_profile.h"

namespace heddle::tools {

// The measurements of one instruction in the timed runs of one rank. The instruction launches a
// kernel, calls a library, copies or communicates.
struct InstructionTimes {
  std::string text;
  int64_t issued = 0;                // number of executions
  std::vector<int64_t> nanoseconds;  // per execution on a stream; empty: the device did no work
  int64_t bytes = 0;                 // number of bytes that all executions together read and write
  double operations = 0;  // number of operations of all executions together; 0: no matrix product
  std::optional<host::MatmulWork> product;  // work of one execution; nullopt: no matrix product
};

using TimesByInstruction = std::map<host::InstructionIndex, InstructionTimes>;

// Adds the events of one run (RunProfile::events()) to `times`. Ignores instructions without work
// on the device.
void addRun(host::RunProfile& profile, TimesByInstruction& times);

// The peak rates of one rank's device. A profile compares the measured rates with them.
struct PeakRates {
  double copy_bytes_per_second = 0;  // 0: unknown
  // Per kind of matrix product in a profile: operations per second; 0: unknown. The dtypes and
  // MatmulWork::tf32 are the kind. MatmulWork::operations is 0 in these pairs, because it is no
  // part of the kind.
  std::vector<std::pair<host::MatmulWork, double>> products;

  // Returns the operations per second of products of the same kind as `work`, or 0 if unknown.
  double productRate(const host::MatmulWork& work) const;
};

// profileRows() returns the rows of one rank in the CSV file of `heddle run --profile`.
// profileHeader() returns the header of this file.
std::string profileRows(int rank, const TimesByInstruction& times, const PeakRates& rates);
std::string profileHeader();

}  // namespace heddle::tools
