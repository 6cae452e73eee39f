#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/device/device.h"
#include "host/run/profile/run_profile.h"

namespace heddle::tools {

// What the timed runs of one rank have recorded about one instruction that launches a kernel, calls
// a library, copies or communicates.
struct InstructionTimes {
  std::string text;
  int64_t issued = 0;                // number of executions
  std::vector<int64_t> nanoseconds;  // per execution on a stream; empty: the device does no work
  int64_t bytes = 0;                 // number of bytes that all executions together read and write
  double operations = 0;  // number of operations of all executions together; 0: no matrix product
  std::optional<host::MatmulWork> product;  // work of one execution; nullopt: no matrix product
};

using TimesByInstruction = std::map<host::InstructionIndex, InstructionTimes>;

// Adds the record of one run. The times are those of the timeline (RunProfile::events()).
void addRun(host::RunProfile& profile, TimesByInstruction& times);

// The peak rates of one rank's device. A profile compares the measured rates with them.
struct PeakRates {
  double copy_bytes_per_second = 0;  // 0: unknown
  // Per kind of matrix product in a profile: operations per second.
  // MatmulWork::operations is 0 in the pairs, because it does not belong to the kind of a product.
  std::vector<std::pair<host::MatmulWork, double>> products;

  // Returns 0 if the rate is unknown.
  double productRate(const host::MatmulWork& work) const;
};

// Returns the rows of one rank in the CSV file, without the header.
std::string profileRows(int rank, const TimesByInstruction& times, const PeakRates& rates);
std::string profileHeader();

}  // namespace heddle::tools
