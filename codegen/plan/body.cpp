#include "codegen/plan/body.h"

#include <algorithm>
#include <limits>

#include "codegen/plan/joint.h"
#include "codegen/plan/op_text.h"
#include "ir/analysis/indexed_axes.h"
#include "ir/analysis/shardable_axes.h"
#include "ir/base/check.h"
#include "ir/graph/compute_type.h"

namespace heddle::codegen {
namespace {

DType accumulatorType(DType result) {
  switch (result) {
    case DType::Bool:
    case DType::U8:
    case DType::I8:
    case DType::I32:
    case DType::I64:
      return DType::I64;
    case DType::F8E4M3:
    case DType::F8E5M2:
    case DType::F16:
    case DType::BF16:
    case DType::F32:
      return DType::F32;
    case DType::F64:
      return DType::F64;
  }
  return DType::F32;
}

class BodyWriter {
 public:
  BodyWriter(const Fusion& segment, const Analysis& analysis, const Space& space,
             const LeafNode& leaf)
      : segment_(segment),
        analysis_(analysis),
        space_(space),
        leaf_(leaf),
        wanted_(segment.values().size(), false),
        node_of_(segment.values().size()) {}

  WrittenBody write(const std::vector<ValueId>& wanted) {
    for (ValueId id : wanted) wanted_[id] = true;
    markOperands();
    Body body;
    for (ValueId id : segment_.inputs()) {
      if (wanted_[id]) node_of_[id] = body.nodes.push_back(leaf_(id)->node);
    }
    for (ExprId id : segment_.exprs().ids()) {
      const ValueId result = segment_.expr(id).outputs[0];
      if (!wanted_[result]) continue;
      std::optional<Leaf> leaf = leaf_(result);
      if (leaf) {
        for (ValueId operand : leaf->operands) leaf->node.operands.push_back(nodeOf(operand));
      }
      node_of_[result] =
          leaf ? body.nodes.push_back(std::move(leaf->node)) : writeExpression(body, id);
    }
    return {std::move(body), std::move(node_of_)};
  }

 private:
  NodeId nodeOf(ValueId value) const { return node_of_[value]; }

  OpText textOf(const Expression& expr) const {
    return opTextOf(segment_, analysis_, expr,
                    [this](ValueId id) { return leaf_(id).has_value(); });
  }

  // Marks the values that the body must compute or read for the values that are wanted so far.
  void markOperands() {
    for (ExprId id : segment_.exprs().ids().reversed()) {
      const Expression& expr = segment_.expr(id);
      if (!wanted_[expr.outputs[0]]) continue;
      if (const std::optional<Leaf> leaf = leaf_(expr.outputs[0])) {
        for (ValueId operand : leaf->operands) wanted_[operand] = true;
        continue;
      }
      if (expr.op->kind == OpKind::Pointwise) {
        for (ValueId operand : textOf(expr).operands) wanted_[operand] = true;
        continue;
      }
      for (size_t i = 0; i < expr.inputs.size(); ++i) {
        if (!isIndexed(expr, i)) wanted_[expr.inputs[i]] = true;
      }
    }
  }

  // Adds the node of an expression, and returns the id of the node. A broadcast, expand or set adds
  // no node: its result has the node of its operand.
  NodeId writeExpression(Body& body, ExprId id) {
    const Expression& expr = segment_.expr(id);
    Node node;
    node.dtype = segment_.value(expr.outputs[0]).tensor.dtype;
    switch (expr.op->kind) {
      case OpKind::Constant:
        node.kind = Node::Kind::Literal;
        node.literal = constantValue(expr);
        break;
      case OpKind::Broadcast:
      case OpKind::Expand:
      case OpKind::Set:
        return nodeOf(expr.inputs[0]);
      case OpKind::Pointwise: {
        node.kind = Node::Kind::Apply;
        const OpText text = textOf(expr);
        node.text = text.text;
        node.state = expr.op->state;
        node.compute = computeTypeOf(segment_, expr);
        node.conditions = expr.op->bool_operands;
        for (ValueId operand : text.operands) node.operands.push_back(nodeOf(operand));
        if (expr.op->selects && areOfType(body, node)) node.compute = node.dtype;
        break;
      }
      case OpKind::Full:
        node.kind = Node::Kind::Apply;
        node.text = "{0}";
        node.compute = computeType(fullFrom(expr, node.dtype));
        node.operands.push_back(nodeOf(expr.inputs[0]));
        break;
      case OpKind::Iota:
        node.kind = Node::Kind::Coordinate;
        node.index = coordinateOf(expr.outputs[0], expr.attr<int64_t>("axis")).number();
        break;
      case OpKind::Index:
        writeLoadAt(expr, node);
        break;
      case OpKind::SizeOf:
      case OpKind::Reshape:
      case OpKind::Permute:
      case OpKind::Slice:
      case OpKind::Diagonal:
      case OpKind::Reduction:
      case OpKind::Matmul:
      case OpKind::Scan:
      case OpKind::Scatter:
        HEDDLE_CHECK(false, "{} cannot be in a kernel segment", expr.op->name);
    }
    return body.nodes.push_back(std::move(node));
  }

  // Returns whether all operands except the conditions have the dtype of the node.
  static bool areOfType(const Body& body, const Node& node) {
    return std::all_of(node.operands.begin() + node.conditions, node.operands.end(),
                       [&](NodeId id) { return body.nodes[id].dtype == node.dtype; });
  }

  // Returns the type from which the op `full` converts its scalar. A float that fills an integer
  // tensor saturates at the ends of the range of the tensor's type, as in a cast.
  DType fullFrom(const Expression& expr, DType dtype) const {
    const DType from = segment_.value(expr.inputs[0]).tensor.dtype;
    return isFloat(from) && !isFloat(dtype) && dtype != DType::Bool ? from : dtype;
  }

  // Returns the coordinate along an axis of the value. Invalid: the axis has one element.
  CoordinateId coordinateOf(ValueId value, int64_t axis) const {
    const AxisId own = analysis_.axes[value][axis];
    const std::vector<AxisId>& all = analysis_.coordinates;
    if (!own.valid()) return {};
    return CoordinateId(std::find(all.begin(), all.end(), own) - all.begin());
  }

  void writeLoadAt(const Expression& expr, Node& node) const {
    node.kind = Node::Kind::LoadAt;
    const std::vector<ValueId>& ids = segment_.inputs();
    auto operand = std::find(ids.begin(), ids.end(), expr.inputs[0]) - ids.begin();
    node.index = static_cast<int>(
        std::find_if(space_.indexed.begin(), space_.indexed.end(),
                     [&](const IndexedTensor& t) { return t.operand == operand; }) -
        space_.indexed.begin());
    for (const IndexedAxis& axis : indexedAxesOf(segment_, expr)) {
      ComputedIndex computed;
      if (axis.output_axis == IndexedAxis::kByValue) {
        computed.node = nodeOf(expr.inputs[1]);
        computed.in_block = looksUpInBlocks(segment_, expr);
      } else {
        computed.coordinate = coordinateOf(expr.outputs[0], axis.output_axis);
      }
      computed.local = axis.together;
      computed.reversed = axis.reversed;
      if (axis.low.isConstant()) {
        computed.shift = axis.low.constant();
      } else {
        const std::vector<Size>& widths = analysis_.widths;
        const auto found = std::find(widths.begin(), widths.end(), axis.low);
        computed.width = static_cast<int>(found - widths.begin());
      }
      computed.checked = axis.mayMiss();
      node.computed_indices.push_back(computed);
    }
    // Outside of the tensor, a pad has its fill value. Every other op has NaN or 0.
    if (expr.op->name == "pad") {
      node.operands.push_back(nodeOf(expr.inputs[1]));
    } else if (isFloat(node.dtype)) {
      node.literal = std::numeric_limits<double>::quiet_NaN();
    } else {
      node.literal = int64_t{0};
    }
  }

  const Fusion& segment_;
  const Analysis& analysis_;
  const Space& space_;
  const LeafNode& leaf_;
  IdVector<ValueId, bool> wanted_;
  IdVector<ValueId, NodeId> node_of_;
};

// Returns the index of the value among the inputs of the segment, or -1.
int inputPosition(const Fusion& segment, ValueId value) {
  const std::vector<ValueId>& inputs = segment.inputs();
  const auto found = std::find(inputs.begin(), inputs.end(), value);
  return found == inputs.end() ? -1 : static_cast<int>(found - inputs.begin());
}

}  // namespace

int64_t opsOf(const Body& body) {
  constexpr int64_t kCallOps = 16;
  int64_t ops = 0;
  for (const Node& node : body.nodes) {
    ops += node.text.find("hd::") == std::string_view::npos ? 1 : kCallOps;
  }
  return ops;
}

WrittenBody writeBody(const Fusion& segment, const Analysis& analysis, const Space& space,
                      const std::vector<ValueId>& wanted, const LeafNode& leaf) {
  return BodyWriter(segment, analysis, space, leaf).write(wanted);
}

Accumulator makeAccumulator(const Fusion& segment, const Analysis& analysis, ExprId reduction) {
  const Expression& expr = segment.expr(reduction);
  HEDDLE_CHECK(expr.op->reduce_op.has_value(), "reduction {} has no reduce_op", expr.op->name);
  Accumulator acc;
  acc.text = expr.op->text;
  acc.dtype = segment.value(expr.outputs[0]).tensor.dtype;
  acc.type = accumulatorType(acc.dtype);
  acc.average = *expr.op->reduce_op == ReduceOp::Avg;
  // The identity comes from the dtype of the result: the lowest bool is false, but the lowest i64
  // would convert to true.
  acc.identity = identityOf(*expr.op->reduce_op, acc.dtype);
  for (const JointReductions& pair : analysis.joint) {
    if (pair.first != reduction && pair.second != reduction) continue;
    acc.joint = pair.kind;
    if (pair.second == reduction) acc.first = accumulatorOf(analysis, pair.first);
  }
  return acc;
}

std::vector<int> tensorsOfOperands(const Fusion& segment, const Space& space) {
  std::vector<int> tensor_of(segment.inputs().size() + segment.outputs().size(), -1);
  for (size_t t = 0; t < space.tensors.size(); ++t) {
    tensor_of[space.tensors[t].operand] = static_cast<int>(t);
  }
  return tensor_of;
}

std::optional<Node> inputNode(const Fusion& segment, const std::vector<int>& tensor_of,
                              ValueId value) {
  const int position = inputPosition(segment, value);
  if (position < 0) return std::nullopt;
  const bool scalar = segment.value(value).is_scalar;
  Node node;
  node.kind = scalar ? Node::Kind::Scalar : Node::Kind::Load;
  node.dtype = segment.tensor(value).dtype;
  node.index = scalar ? position : tensor_of[position];
  return node;
}

AccumulatorId accumulatorOf(const Analysis& analysis, ExprId reduction) {
  const std::vector<ExprId>& all = analysis.reductions;
  const auto found = std::find(all.begin(), all.end(), reduction);
  return found == all.end() ? AccumulatorId() : AccumulatorId(found - all.begin());
}

std::optional<Leaf> resultNode(const Fusion& segment, const Analysis& analysis, ValueId value) {
  const ExprId definition = segment.value(value).definition;
  Node node;
  node.kind = Node::Kind::Result;
  node.dtype = segment.tensor(value).dtype;
  node.index = accumulatorOf(analysis, definition).number();
  if (node.index < 0) return std::nullopt;
  const JointReductions* pair = analysis.pairEndingWith(definition);
  if (pair == nullptr || pair->center == kNoValue) return Leaf(std::move(node));
  return Leaf(std::move(node), {pair->center});
}

std::vector<AccumulatorId> withState(const IdVector<AccumulatorId, Accumulator>& accumulators) {
  std::vector<AccumulatorId> found;
  for (AccumulatorId a : accumulators.ids()) {
    if (accumulators[a].hasState()) found.push_back(a);
  }
  return found;
}

std::vector<DType> memberTypes(const Accumulator& accumulator) {
  if (accumulator.joint == JointKind::None) return {accumulator.type};
  return std::vector<DType>(jointText(accumulator.joint).members.size(), DType::F32);
}

Computation makeComputation(const Fusion& segment, const Analysis& analysis, const Space& space) {
  const std::vector<int> tensor_of = tensorsOfOperands(segment, space);
  std::vector<ValueId> in_loop;
  std::vector<ValueId> in_finish;
  // Both reductions of a joint pair read the elements of the first reduction.
  const auto elementOf = [&](ExprId reduction) {
    const JointReductions* pair = analysis.pairEndingWith(reduction);
    return segment.expr(pair == nullptr ? reduction : pair->first).inputs[0];
  };
  for (ExprId reduction : analysis.reductions) in_loop.push_back(elementOf(reduction));
  for (size_t i = 0; i < segment.outputs().size(); ++i) {
    (analysis.stored_in[i] == StoredIn::Loop ? in_loop : in_finish).push_back(segment.outputs()[i]);
  }
  const auto inputLeaf = [&](ValueId id) -> std::optional<Leaf> {
    return inputNode(segment, tensor_of, id);
  };
  WrittenBody loop = writeBody(segment, analysis, space, in_loop, inputLeaf);
  WrittenBody finish = writeBody(segment, analysis, space, in_finish, [&](ValueId id) {
    std::optional<Leaf> leaf = inputLeaf(id);
    return leaf ? leaf : resultNode(segment, analysis, id);
  });
  Computation computation;
  for (ExprId reduction : analysis.reductions) {
    computation.accumulators.push_back(makeAccumulator(segment, analysis, reduction));
    computation.accumulators.back().element = loop.node_of[elementOf(reduction)];
  }
  for (size_t i = 0; i < segment.outputs().size(); ++i) {
    WrittenBody& written = analysis.stored_in[i] == StoredIn::Loop ? loop : finish;
    const NodeId node = written.node_of[segment.outputs()[i]];
    written.body.stores.push_back({node, tensor_of[segment.inputs().size() + i]});
  }
  computation.loop = std::move(loop.body);
  computation.finish = std::move(finish.body);
  return computation;
}

}  // namespace heddle::codegen
