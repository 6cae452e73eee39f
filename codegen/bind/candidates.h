#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel.h"
#include "codegen/kernel_choice.h"
#include "codegen/plan/generated.h"
#include "ir/graph/fusion.h"
#include "ir/types/tensor.h"

namespace heddle::codegen {

struct Analysis;

// One way to compute a segment for the shapes of a run.
struct Candidate {
  KernelChoice choice;  // all parameters; planKernel() with this choice returns `plan`
  KernelPlan plan;
};

// Returns the candidates of a segment. The first one is what planKernel() returns without a choice;
// fixed rules choose it from the sizes. Most others differ in one parameter from the first one, or
// have another family. Their order does not depend on the time model (codegen/bind/time_model.h).
//   loops     each element is computed once (codegen/plan/schedule.h)
//   rows      a row, or a bundle of rows, is kept or read again for several sweeps
//             (codegen/families/rows.h)
//   divided   CUDA blocks share long rows (codegen/families/divide_rows.h)
//   sweeps    several launches with temporaries (codegen/families/sweeps.h)
//   squares   transposes (codegen/families/squares.h)
//   columns   rows and sums over rows in one launch; only one set of parameters
//   parts     a segment of several parts; only one candidate
// - Two candidates with the same source and the same launches are one candidate.
// - All candidates read and write the operands of the segment, and no other memory except a
//   workspace. A launch therefore passes the same arguments to each of them. Which outputs may be
//   stored in inputs depends on the segment alone (codegen/plan/in_place.h).
// - The results may differ in the last bits, because the orders of reductions differ. Candidates
//   with equal reductionOrder() (codegen/bind/candidate_numbers.h) give equal bits.
// The parameters are those of planKernel(). Plans every candidate, which takes a few milliseconds.
std::vector<Candidate> candidates(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                                  const std::vector<TensorDesc>& outputs, Target target,
                                  const std::vector<int32_t>& alignments, const RunSizes& run,
                                  const Analysis* analysis = nullptr);

// Returns the index of the candidate that a text names: its index, or a part of its parameters in
// the form of parseKernelChoice(). If several candidates have these parameters, returns the first
// one. Throws UserError that lists the candidates if there is none. `kernel` is a name for
// messages.
size_t findCandidate(const std::vector<Candidate>& all, std::string_view asked,
                     std::string_view kernel);

}  // namespace heddle::codegen
