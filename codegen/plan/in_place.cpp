#include "codegen/plan/in_place.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/plan/analysis.h"
#include "ir/analysis/indexed_axes.h"
#include "ir/analysis/kernel_rules.h"

namespace heddle::codegen {

std::string whyNotInPlace(const Fusion& segment, size_t input, size_t output) {
  const ValueId in = segment.inputs().at(input);
  const ValueId out = segment.outputs().at(output);
  const std::string& name = segment.value(in).name;
  const std::vector<ValueId> indexed = indexedInputs(segment);
  if (std::find(indexed.begin(), indexed.end(), in) != indexed.end()) {
    return fmt::format("the kernel reads %{} at computed indices", name);
  }
  const std::string& result = segment.value(out).name;
  if (segment.tensor(in).dtype != segment.tensor(out).dtype) {
    return fmt::format("%{} and %{} have different dtypes", name, result);
  }
  const Analysis analysis = analyze(segment);
  const std::vector<int>& axes = analysis.axes[in];
  if (axes != analysis.axes[out]) {
    return fmt::format("the kernel reads %{} at other indices than it writes %{}", name, result);
  }
  for (int axis = 0; axis < static_cast<int>(analysis.reduced.size()); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) {
      return fmt::format("the kernel reads each element of %{} several times", name);
    }
  }
  const std::vector<ExprId> columns = columnReductions(segment);
  if (!columns.empty()) {
    return fmt::format("the kernel also reduces columns (%{})",
                       segment.value(segment.expr(columns.front()).outputs[0]).name);
  }
  return "";
}

}  // namespace heddle::codegen
