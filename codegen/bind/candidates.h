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
  KernelChoice choice;  // with all parameters; planKernel() with this choice returns `plan`
  KernelPlan plan;
};

// Returns the candidates of a segment. The first one is what planKernel() returns without a choice;
// fixed rules choose it from sizes, strides and alignments. Most others differ in one parameter
// from the first one, or have another family. The order of the candidates does not depend on the
// time model (codegen/bind/time_model.h). The families are:
//   loops     a kernel passes over the elements once, item by item (codegen/families/loops.h)
//   rows      a kernel passes over each row, or each bundle of rows, once or several times, and
//             holds the row if it fits (codegen/families/rows/rows.h); a block or a cluster of
//             CUDA blocks per row
//   divided   several CUDA blocks share each row (codegen/families/rows/divide_rows.h)
//   sweeps    each pass over the rows has launches of its own (codegen/families/sweeps.h)
//   squares   transposes (codegen/families/squares.h)
//   columns   one launch computes rows and sums columns over parts of the rows, and a second launch
//             combines these sums; only one set of parameters (codegen/families/columns.h)
//   parts     a segment of several independent parts; only one candidate
// Rules:
// - Two candidates with the same source, launches and size of the workspace are one candidate.
// - All candidates read and write the operands of the segment, and no other memory except a
//   workspace. Callers therefore pass the same operands to each candidate. Which outputs may be
//   stored in inputs depends on the segment alone (codegen/plan/in_place.h).
// - The results may differ in the last bits, because the orders of reductions differ. Candidates
//   with equal reductionOrder() (codegen/bind/candidate_numbers.h) give equal bits.
// The arguments are those of planKernel() (codegen/emit/plan_kernel.h). The function plans every
// candidate, which takes a few milliseconds.
std::vector<Candidate> candidates(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                                  const std::vector<TensorDesc>& outputs, Target target,
                                  const std::vector<int32_t>& alignments, const RunSizes& run,
                                  const Analysis* analysis = nullptr);

// Returns the index of the candidate that `asked` names. `asked` is either an index into `all` or a
// text that parseKernelChoice() parses. The text may name only some of the parameters. If several
// candidates have the named parameters, returns the first one. If there is no such candidate,
// throws UserError with a list of the candidates. `kernel` is the name of the kernel in the
// message.
size_t findCandidate(const std::vector<Candidate>& all, std::string_view asked,
                     std::string_view kernel);

}  // namespace heddle::codegen
