#pragma once

#include <string>
#include <vector>

#include "codegen/kernel.h"
#include "ir/graph/fusion.h"
#include "ir/types/tensor.h"

namespace heddle::codegen {

struct Analysis;
struct KernelChoice;
struct RunSizes;
struct StageLayout;

// Chooses a kernel for the shapes of a run, and returns its source and its launches.
// - The operands may have any strides and any number of axes, and there may be several outputs.
// - `segment` is the part of a fusion that becomes one kernel. `inputs` and `outputs` have one
//   descriptor per operand, in the order of the segment's inputs() and outputs(). A scalar input
//   also has a descriptor, which is ignored.
// - An output may have the same memory as an input if InPlaceRules (codegen/plan/in_place.h) allow
//   it. Any other overlap of an output with another operand can give wrong results. Nothing checks
//   this.
// - `alignments` has one entry per operand, in the order inputs, outputs: the alignment of the
//   operand's first element in bytes (alignmentOf()). An empty list means kFullAlignment for all
//   operands. A CUDA kernel must not be launched with an operand of smaller alignment.
// - `run` has one descriptor per value of generatedValues(segment) (codegen/plan/generated.h), as
//   this rank would store the value, and one number per element of Analysis::widths.
// - The source depends only on the segment and the form of the kernel (docs/kernels.md), not on
//   exact sizes. A run with new sizes therefore often needs no compilation.
// - `analysis` is the result of analyze() (codegen/plan/analysis.h) for the segment. nullptr: the
//   function calls analyze() itself.
// - `layouts` receives one StageLayout per stage of the plan, which says what the arguments of the
//   launch contain. nullptr: the caller does not need them.
// - `choice` names parameters of a candidate (codegen/bind/candidates.h). The result may have other
//   parameters if the segment or the shapes do not permit these: see KernelPlan::candidate.
//   nullptr: the first candidate.
// - Throws UserError if the segment is not one kernel (checked only without `analysis`), or if the
//   ranks or sizes in the descriptors do not fit the segment or each other. Thread-safe.
KernelPlan planKernel(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                      const std::vector<TensorDesc>& outputs, Target target,
                      const std::vector<int32_t>& alignments, const RunSizes& run,
                      const Analysis* analysis = nullptr,
                      std::vector<StageLayout>* layouts = nullptr,
                      const KernelChoice* choice = nullptr);
// Calls the function above with `run` = unshardedSizes(segment, inputs, outputs)
// (codegen/plan/generated.h).
KernelPlan planKernel(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                      const std::vector<TensorDesc>& outputs, Target target,
                      const std::vector<int32_t>& alignments = {});

// Texts about a kernel for people, for `heddle dump`. Both contain the names of the fusion
// (codegen/emit/named_text.h), except that the text of a shared launch has no names, because
// several parts share it.
struct KernelTexts {
  std::string schedule;  // the tile programs of the launches
  std::string kernel;    // the source text
};
// Describes the kernel that planKernel() chooses for the same arguments.
KernelTexts describeKernel(const Fusion& segment, const std::vector<TensorDesc>& inputs,
                           const std::vector<TensorDesc>& outputs, Target target,
                           const std::vector<int32_t>& alignments, const RunSizes& run,
                           const KernelChoice* choice = nullptr);

}  // namespace heddle::codegen
