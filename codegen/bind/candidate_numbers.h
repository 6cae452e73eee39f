#pragma once

#include <string>
#include <vector>

#include "codegen/bind/candidates.h"
#include "codegen/bind/entry_numbers.h"

namespace heddle::codegen {

// Returns the numbers of each candidate in `all` (codegen/bind/entry_numbers.h). `all` must be the
// result of candidates() for the same segment, operands, target and sizes.
std::vector<KernelNumbers> candidateNumbers(const Fusion& segment,
                                            const std::vector<TensorDesc>& inputs,
                                            const std::vector<TensorDesc>& outputs, Target target,
                                            const std::vector<int32_t>& alignments,
                                            const RunSizes& run, const std::vector<Candidate>& all);

// Returns a text that names the order in which a kernel adds the elements of its reductions. The
// text is "" if the kernel has no reductions. If two candidates of a segment have equal texts, they
// apply the same operations in the same order. Their results then have the same bits. (Only the
// bits of a NaN may differ.) Candidates with different texts may still have equal results.
std::string reductionOrder(const KernelNumbers& numbers, Target target);

}  // namespace heddle::codegen
