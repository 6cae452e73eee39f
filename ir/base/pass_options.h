#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// Returns true if the environment variable HEDDLE_VERIFY_EACH was set to anything but "" and "0" at
// the first call of this function. ctest sets the variable for every test.
bool verifyEachByDefault();

// Options of a pipeline, a sequence of passes. One pipeline transforms fusions (ir/graph/fusion.h).
// A second one transforms host programs (host/program/program.h).
struct PassOptions {
  // Names of the passes to skip. The pipeline throws UserError for a name that no pass has.
  std::vector<std::string> skip;
  // Called after each pass that changed the fusion or the program. `text` is the text form after
  // the pass.
  std::function<void(std::string_view pass, const std::string& text)> dump;
  // Called after every pass that was not skipped, with the duration of the pass. The pipeline of
  // host programs may create two versions of a program, one in which collectives are split into
  // chunks and one in which they are not. It then reports a later pass once per version. Two steps
  // between the pipelines are reported in the same way: "segment", which splits a fusion into
  // segments, and "lower", which creates the host program.
  std::function<void(std::string_view pass, double seconds)> timing;
  // true: the pipeline verifies its final result. A caller that verifies the result itself, or has
  // already done so, sets this to false.
  bool verify = true;
  // true: the pipeline verifies the fusion or the program after every pass. If it is then not
  // valid, the pipeline throws InternalError with the name of the pass.
  bool verify_each = verifyEachByDefault();
};

}  // namespace heddle
