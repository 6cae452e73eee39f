#include "host/passes/chunk/rowwise_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/base/check.h"
#include "ir/graph/builder.h"

namespace heddle::host {
namespace {

class RowwiseKernelCheck {
 public:
  RowwiseKernelCheck(const Fusion& segment, size_t rank) : segment_(segment), rank_(rank) {}

  // Returns the reason why the kernel is not rowwise; empty: it is rowwise. Checks the result
  // first, because all other values are compared with it.
  std::string run() const {
    if (segment_.outputs().size() != 1) return "it has several results";
    const ValueId result = segment_.outputs().front();
    if (rank_ == 0) return fmt::format("%{} has no axes", segment_.value(result).name);
    if (!hasRows(result)) return fmt::format("%{} has no rows", segment_.value(result).name);
    if (segment_.tensor(result).domain.back().kind == IterKind::Broadcast) {
      return fmt::format("%{} has one element per row", segment_.value(result).name);
    }
    for (ValueId id : segment_.values().ids()) {
      const Value& value = segment_.value(id);
      const bool shared = value.is_scalar || value.tensor.rank() == 1;
      const bool spread = value.definition != kNoExpr && isSharedByRows(value.tensor);
      if (!shared && !spread && !hasRows(id)) {
        return fmt::format("%{} has other axes than the result", value.name);
      }
    }
    for (const Expression& expr : segment_.exprs()) {
      if (!staysInRow(expr)) {
        return fmt::format("{} of %{} does not stay within a row", expr.op->name,
                           segment_.value(expr.outputs[0]).name);
      }
    }
    return {};
  }

  bool hasRows(ValueId id) const {
    const Value& value = segment_.value(id);
    const TensorView& result = segment_.tensor(segment_.outputs().front());
    if (value.is_scalar || value.tensor.rank() != rank_ || result.rank() != rank_) return false;
    for (size_t axis = 0; axis + 1 < rank_; ++axis) {
      const IterDomain& mine = value.tensor.domain[axis];
      if (mine.kind != IterKind::Iteration || mine.extent != result.domain[axis].extent) {
        return false;
      }
    }
    return true;
  }

 private:
  bool isSharedByRows(const TensorView& tensor) const {
    if (tensor.rank() != rank_) return false;
    return std::all_of(tensor.domain.begin(), tensor.domain.end() - 1,
                       [](const IterDomain& axis) { return axis.kind == IterKind::Broadcast; });
  }

  bool staysInRow(const Expression& expr) const {
    switch (expr.op->kind) {
      case OpKind::Constant:
        return true;
      case OpKind::Pointwise:
      case OpKind::Set: {
        // All operands except scalars must have as many axes as the result.
        const size_t rank = rankOf(expr.outputs[0]);
        return std::all_of(expr.inputs.begin(), expr.inputs.end(), [&](ValueId id) {
          return segment_.value(id).is_scalar || rankOf(id) == rank;
        });
      }
      case OpKind::Reduction: {
        const std::vector<int64_t> last{static_cast<int64_t>(rank_) - 1};
        return expr.attr<std::vector<int64_t>>("axes") == last && rankOf(expr.outputs[0]) == rank_;
      }
      case OpKind::Broadcast:
        return rankOf(expr.inputs[0]) == 1 && rankOf(expr.outputs[0]) == rank_ &&
               isSharedByRows(segment_.tensor(expr.outputs[0]));
      default:
        return false;
    }
  }

  size_t rankOf(ValueId id) const { return segment_.tensor(id).rank(); }

  const Fusion& segment_;
  const size_t rank_;
};

}  // namespace

RowwiseKernel rowwiseKernelOf(const Fusion& segment, size_t rank) {
  const RowwiseKernelCheck check(segment, rank);
  RowwiseKernel kernel{{}, check.run()};
  if (!kernel.why.empty()) return kernel;
  for (ValueId id : segment.inputs()) kernel.has_rows.push_back(check.hasRows(id));
  return kernel;
}

Fusion kernelOnRows(const Fusion& segment, const std::vector<TensorView>& operands,
                    const AxisOrder& order, const std::string& name) {
  FusionBuilder b(name);
  // The new kernel gets the same meshes as the old one. The reason: the parser adds all meshes of a
  // program to each kernel, and a printed and parsed program must equal the original.
  for (const DeviceMesh& mesh : segment.meshes) b.mesh(mesh);
  IdVector<ValueId, ValueId> new_of(segment.values().size(), kNoValue);
  for (size_t i = 0; i < operands.size(); ++i) {
    const Value& value = segment.value(segment.inputs()[i]);
    ValueId& made = new_of[segment.inputs()[i]];
    if (value.is_scalar) {
      made = b.scalarInput(value.name, value.tensor.dtype, value.default_value);
      continue;
    }
    TensorView type = operands[i];
    type.domain.back().kind = value.tensor.domain.back().kind;
    type.layout = {};  // the slot of the operand says its memory order
    made = b.input(value.name, type);
  }
  for (const Expression& expr : segment.exprs()) {
    std::vector<ValueId> inputs;
    for (ValueId id : expr.inputs) inputs.push_back(new_of[id]);
    b.name(segment.value(expr.outputs[0]).name).line(expr.line);
    ValueId& made = new_of[expr.outputs[0]];
    if (expr.op->kind == OpKind::Broadcast) {
      std::vector<int64_t> rows = rowMajor(order.size());
      rows.pop_back();
      made = b.broadcast(inputs[0], rows);
    } else if (expr.op->kind == OpKind::Reduction) {
      const int64_t last = static_cast<int64_t>(order.size()) - 1;
      made = b.reduce(expr.op->name, inputs[0], {last}, true);
    } else {
      made = b.apply(expr.op->name, inputs, expr.attrs);
    }
  }
  const ValueId result = new_of[segment.outputs().front()];
  if (order != rowMajor(order.size())) b.mutableFusion().layout(result).needed = order;
  b.output(result);
  return std::move(b).build();
}

}  // namespace heddle::host
