#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "host/plan/plan.h"
#include "host/run/numerics/bad_elements.h"

namespace heddle::host {

// Returns whether the environment variable HEDDLE_CHECK_NUMERICS is set, and neither empty nor "0".
bool checksNumericsByDefault();

// The bad elements of one run: those that are NaN or infinite. The run inspects the tensors and
// scalars of an instruction before and after the instruction (Plan::Inspection). Thread-safe.
class NumericsRecord {
 public:
  explicit NumericsRecord(int64_t rank) : rank_(rank) {}

  // Adds the bad elements of entry `i` of Inspection::read, or of Inspection::written if `after` is
  // true. Call this only if there are bad elements.
  void add(int32_t inspection, bool after, size_t i, const BadElements& bad);
  // Returns a text about the first instruction, in the order of the program, that has written bad
  // elements. If this instruction also read bad elements, a second line names the first later
  // instruction that has written bad elements but read none. If there is none, the second line is
  // missing. Returns "" if no instruction has written bad elements. `textOf` returns the text of an
  // instruction.
  std::string report(const IdVector<InspectionId, Plan::Inspection>& inspections,
                     const std::function<std::string(InstructionIndex)>& textOf) const;

 private:
  // The bad elements of an instruction, by the position of the tensor or scalar in Inspection::read
  // or Inspection::written.
  struct Found {
    std::map<size_t, BadElements> read;
    std::map<size_t, BadElements> written;
  };
  std::string line(const Plan::Inspection& inspection, const Found& found,
                   const std::string& text) const;

  const int64_t rank_;
  mutable std::mutex mutex_;        // guards found_
  std::map<int32_t, Found> found_;  // by inspection; inspections are in the order of the program
};

// Prints the reports of the runs of one Executable. Thread-safe.
class NumericsLog {
 public:
  // Prints a report on stderr, unless it is empty or equals the report of the previous call.
  void print(const std::string& report);

 private:
  std::mutex mutex_;
  std::string latest_;
};

}  // namespace heddle::host
