#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "host/executable_impl.h"
#include "host/plan/size_inputs.h"
#include "host/prepared_run.h"

namespace heddle::host {

struct PreparedRun::Impl {
  // `keep` is the owner of the Executable, or nullptr if the caller owns it.
  Impl(Executable::Impl& target, std::shared_ptr<Executable> keep, std::shared_ptr<const Plan> plan,
       std::vector<Argument> inputs, RunOptions options);

  Executable::Impl& target;
  std::shared_ptr<Executable> keep;
  std::shared_ptr<const Plan> plan;
  std::vector<Argument> inputs;
  RunOptions options;
  SizeInputs sizes;               // the inputs that decide sizes
  std::vector<LateRange> ranges;  // their values for which the plan is valid
  // The alignments in bytes of the addresses for which the plan was made.
  std::vector<int64_t> input_alignments;
  std::vector<int64_t> output_alignments;
};

}  // namespace heddle::host
