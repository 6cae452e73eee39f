#include "codegen/families/rows/row_statements.h"

#include <algorithm>
#include <map>

#include "ir/analysis/indexed_axes.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// The two texts that a division may have in a body. kDivision rounds to nearest. kNearDivision is
// the OpDef::rounded_text of the division.
constexpr std::string_view kDivision = "({0} / {1})";
constexpr std::string_view kNearDivision = "hd::nearDivision({0}, {1})";

class StatementWriter {
 public:
  StatementWriter(const Fusion& segment, const Analysis& analysis, const Space& space,
                  const RowValues& values, const RowForm& form)
      : segment_(segment),
        analysis_(analysis),
        space_(space),
        values_(values),
        form_(form),
        tensor_of_(tensorsOfOperands(segment, space)),
        tile_of_(segment.values().size()),
        kept_(segment.values().size(), false) {
    for (ValueId id : form.kept) kept_[id] = true;
    for (ExprId id : analysis.reductions) {
      result_.accumulators.push_back(makeAccumulator(segment, analysis, id));
    }
  }

  RowStatements write() {
    loadInputs([&](ValueId id, const SpaceTensor& tensor) {
      return form_.ahead || values_.per_row[id] || (!form_.looped && changesWithRow(tensor));
    });
    for (int sweep = 0; sweep < values_.sweeps(); ++sweep) writeSweep(sweep);
    storeRowOutputs();
    return std::move(result_);
  }

 private:
  // Returns whether the elements of the tensor differ between rows and change along the row.
  bool changesWithRow(const SpaceTensor& tensor) const {
    return tensor.strides.back() != 0 && changesWithKept(tensor);
  }
  bool changesWithKept(const SpaceTensor& tensor) const {
    return std::any_of(tensor.strides.begin(), tensor.strides.begin() + space_.kept,
                       [](int64_t stride) { return stride != 0; });
  }

  std::vector<Statement>& out() { return *out_; }

  TileId makeTile(ValueId id) {
    return tile_of_[id] = result_.tiles.push_back(
               {segment_.value(id).name, segment_.tensor(id).dtype, values_.per_row[id]});
  }

  // Loads the tensor inputs for which `wanted` returns true and which have no tile yet.
  template <class Wanted>
  void loadInputs(const Wanted& wanted) {
    for (size_t i = 0; i < segment_.inputs().size(); ++i) {
      const ValueId id = segment_.inputs()[i];
      const int tensor = tensor_of_[i];
      if (tensor < 0 || tile_of_[id].valid()) continue;
      if (!wanted(id, space_.tensors[static_cast<size_t>(tensor)])) continue;
      LoadTile load{tensor, makeTile(id)};
      const bool changes = changesWithKept(space_.tensors[static_cast<size_t>(tensor)]);
      if (form_.ahead) load.when = changes ? LoadTile::When::Ahead : LoadTile::When::Once;
      if (!values_.per_row[id] && load.when != LoadTile::When::Once) {
        result_.loaded += sizeOf(segment_.tensor(id).dtype);
      }
      out().push_back(load);
    }
  }

  std::optional<Leaf> leaf(ValueId id) const {
    if (tile_of_[id].valid()) {
      Node node;
      node.kind = Node::Kind::Load;
      node.dtype = segment_.tensor(id).dtype;
      node.index = tile_of_[id].number();
      return Leaf(std::move(node));
    }
    std::optional<Node> node = inputNode(segment_, tensor_of_, id);
    HEDDLE_CHECK(!node || node->kind == Node::Kind::Scalar, "%{} is read before it is loaded",
                 segment_.value(id).name);
    return node ? Leaf(std::move(*node)) : resultNode(segment_, analysis_, id);
  }

  // Writes a body that computes `wanted`. For each tensor that the body reads and that has no tile,
  // adds a load to `loads`. Only the statement of this body reads the tiles of these loads.
  WrittenBody bodyOf(const std::vector<ValueId>& wanted, std::vector<LoadTile>& loads,
                     bool per_row) {
    std::vector<ValueId> loaded;
    for (ValueId id : inputsWithoutTile(wanted)) {
      const std::vector<ValueId>& inputs = segment_.inputs();
      const auto position = std::find(inputs.begin(), inputs.end(), id) - inputs.begin();
      const int tensor = tensor_of_[static_cast<size_t>(position)];
      loads.push_back({tensor, makeTile(id)});
      loaded.push_back(id);
    }
    WrittenBody written =
        writeBody(segment_, analysis_, space_, wanted, [this](ValueId id) { return leaf(id); });
    for (ValueId id : loaded) tile_of_[id] = TileId();
    if (form_.reciprocals && per_row && form_.ahead) divideByScalars(written.body);
    return form_.reciprocals && !per_row ? withReciprocals(std::move(written)) : written;
  }

  // Changes divisions by a scalar into multiplications by the reciprocal of the scalar. If a block
  // processes several rows, the compiler moves the computation of the reciprocal before the first
  // row.
  static void divideByScalars(Body& body) {
    for (Node& node : body.nodes) {
      if (node.kind != Node::Kind::Apply || node.text != kDivision) continue;
      const Node& divisor = body.nodes[node.operands[1]];
      if (node.compute != DType::F32 || divisor.kind != Node::Kind::Scalar) continue;
      node.text = "hd::divided({0}, {1}, hd::reciprocalFor({1}))";
    }
  }

  // Changes divisions by a value per row into multiplications by the reciprocal of this value. The
  // body runs along the row, so it divides many elements by the value.
  WrittenBody withReciprocals(WrittenBody written) {
    IdVector<NodeId, NodeId> copied;  // old node -> new node
    Body body;
    for (Node& node : written.body.nodes) {
      for (NodeId& operand : node.operands) operand = copied[operand];
      for (ComputedIndex& along : node.computed_indices) {
        if (along.node.valid()) along.node = copied[along.node];
      }
      if (isDivisionByRowValue(body, node)) {
        const Node& divisor = body.nodes[node.operands[1]];
        Node load;
        load.kind = Node::Kind::Load;
        load.index = reciprocalTile(divisor).number();
        node.text = node.text == kDivision ? "hd::divided({0}, {1}, {2})"
                                           : "hd::nearDivided({0}, {1}, {2})";
        node.operands.push_back(body.nodes.push_back(std::move(load)));
      }
      copied.push_back(body.nodes.push_back(std::move(node)));
    }
    for (NodeId& node : written.node_of) {
      if (node.valid()) node = copied[node];
    }
    return {std::move(body), std::move(written.node_of)};
  }

  bool isDivisionByRowValue(const Body& body, const Node& node) const {
    if (node.kind != Node::Kind::Apply) return false;
    if (node.text != kDivision && node.text != kNearDivision) return false;
    if (node.compute != DType::F32) return false;
    const Node& divisor = body.nodes[node.operands[1]];
    if (computeType(divisor.dtype) != DType::F32) return false;
    return (divisor.kind == Node::Kind::Result && divisor.operands.empty()) ||
           (divisor.kind == Node::Kind::Load && result_.tiles[TileId(divisor.index)].per_row);
  }

  // Returns the tile with the reciprocal of a node that has one value per row. If there is none
  // yet, adds the map that computes the tile.
  TileId reciprocalTile(const Node& divisor) {
    const auto [found, fresh] = reciprocals_.try_emplace({divisor.kind, divisor.index}, TileId());
    if (!fresh) return found->second;
    MapTiles map{{}, {}, true};
    const NodeId operand = map.body.nodes.push_back(divisor);
    Node reciprocal;
    reciprocal.kind = Node::Kind::Apply;
    reciprocal.text = "hd::reciprocalFor({0})";
    reciprocal.operands.push_back(operand);
    const NodeId result = map.body.nodes.push_back(std::move(reciprocal));
    found->second = result_.tiles.endId();
    result_.tiles.push_back({fmt::format("inverse{}", found->second), DType::F32, true});
    map.results.push_back({result, found->second});
    result_.statements.push_back(std::move(map));
    return found->second;
  }

  // Returns the tensor inputs without a tile on which the values `next` depend.
  std::vector<ValueId> inputsWithoutTile(std::vector<ValueId> next) const {
    IdVector<ValueId, bool> seen(segment_.values().size(), false);
    std::vector<ValueId> found;
    while (!next.empty()) {
      const ValueId id = next.back();
      next.pop_back();
      if (seen[id] || tile_of_[id].valid() || resultNode(segment_, analysis_, id)) continue;
      seen[id] = true;
      const ExprId definition = segment_.value(id).definition;
      if (definition == kNoExpr) {
        if (!segment_.value(id).is_scalar) found.push_back(id);
        continue;
      }
      const Expression& expr = segment_.expr(definition);
      for (size_t i = 0; i < expr.inputs.size(); ++i) {
        if (!isIndexed(expr, i)) next.push_back(expr.inputs[i]);
      }
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  // Returns whether an op must compute the value. A value with a leaf (leaf()) needs no op, and a
  // constant needs none. If a value needs no op, a broadcast, expand or set of this value needs
  // none.
  bool isComputed(ValueId id) const {
    if (leaf(id)) return false;
    const Expression& expr = segment_.expr(segment_.value(id).definition);
    switch (expr.op->kind) {
      case OpKind::Broadcast:
      case OpKind::Expand:
      case OpKind::Set:
        return isComputed(expr.inputs[0]);
      case OpKind::Constant:
        return false;
      default:
        return true;
    }
  }

  // Returns the values per row that the expressions of the values `along_row` read, and that an op
  // must compute.
  std::vector<ValueId> rowValuesFor(const std::vector<ValueId>& along_row) const {
    std::vector<ValueId> found;
    for (ValueId id : along_row) {
      const Expression& expr = segment_.expr(segment_.value(id).definition);
      for (size_t i = 0; i < expr.inputs.size(); ++i) {
        const ValueId input = expr.inputs[i];
        if (isIndexed(expr, i) || segment_.value(input).is_scalar) continue;
        if (values_.per_row[input] && isComputed(input)) found.push_back(input);
      }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  void writeMap(const std::vector<ValueId>& made, bool per_row) {
    if (made.empty()) return;
    MapTiles map{{}, {}, per_row};
    WrittenBody written = bodyOf(made, map.loads, per_row);
    map.body = std::move(written.body);
    for (ValueId id : made) {
      const NodeId node = written.node_of[id];
      map.results.push_back({node, makeTile(id)});
    }
    out().push_back(std::move(map));
  }

  // Writes the map of the values per row first, because the bodies along the row read these values.
  // If RowForm::looped is true, the other statements of the sweep run in a loop over the parts of
  // the row.
  void writeSweep(int sweep) {
    const auto p = static_cast<size_t>(sweep);
    const bool last = sweep + 1 == values_.sweeps();
    if (last && values_.roots[p].empty()) return;
    IdVector<ValueId, bool> leaves(segment_.values().size(), false);
    for (ValueId id : segment_.values().ids()) leaves[id] = kept_[id] && tile_of_[id].valid();
    const std::vector<ValueId> along_row = computedAlongRow(segment_, values_, sweep, leaves);
    writeMap(rowValuesFor(along_row), true);
    LoopOverRow loop;
    if (form_.looped) out_ = &loop.statements;
    std::vector<ValueId> made;
    for (ValueId id : along_row) {
      if (kept_[id]) made.push_back(id);
    }
    writeMap(made, false);
    if (last) {
      storeOutputs(values_.roots[p], false);
    } else {
      reduce(p);
    }
    out_ = &result_.statements;
    if (form_.looped) {
      out().push_back(std::move(loop));
    }
    if (!last) out().push_back(CombineParts{accumulatorsOf(p)});
  }

  std::vector<AccumulatorId> accumulatorsOf(size_t sweep) const {
    std::vector<AccumulatorId> accumulators;
    for (ExprId id : values_.reductions[sweep]) {
      accumulators.push_back(accumulatorOf(analysis_, id));
    }
    return accumulators;
  }

  void reduce(size_t sweep) {
    ReduceTiles statement;
    WrittenBody written = bodyOf(values_.roots[sweep], statement.loads, false);
    for (ExprId id : values_.reductions[sweep]) {
      const AccumulatorId a = accumulatorOf(analysis_, id);
      result_.accumulators[a].element = written.node_of[segment_.expr(id).inputs[0]];
    }
    statement.body = std::move(written.body);
    statement.accumulators = accumulatorsOf(sweep);
    out().push_back(std::move(statement));
  }

  void storeOutputs(const std::vector<ValueId>& outputs, bool per_row) {
    if (outputs.empty()) return;
    MapTiles map{{}, {}, per_row};
    WrittenBody written = bodyOf(outputs, map.loads, per_row);
    for (size_t i = 0; i < segment_.outputs().size(); ++i) {
      const ValueId id = segment_.outputs()[i];
      if (values_.per_row[id] != per_row) continue;
      written.body.stores.push_back(
          {written.node_of[id], tensor_of_[segment_.inputs().size() + i]});
    }
    map.body = std::move(written.body);
    out().push_back(std::move(map));
  }

  // Stores the outputs with one element per row. This comes after the last sweep, because an output
  // may have the memory of an input that a sweep reads.
  void storeRowOutputs() {
    std::vector<ValueId> outputs;
    for (ValueId id : segment_.outputs()) {
      if (values_.per_row[id]) outputs.push_back(id);
    }
    storeOutputs(outputs, true);
  }

  const Fusion& segment_;
  const Analysis& analysis_;
  const Space& space_;
  const RowValues& values_;
  const RowForm& form_;
  const std::vector<int> tensor_of_;
  IdVector<ValueId, TileId> tile_of_;  // invalid: the value has no tile
  IdVector<ValueId, bool> kept_;
  RowStatements result_;
  std::map<std::pair<Node::Kind, int>, TileId> reciprocals_;  // Node::kind and index -> tile
  std::vector<Statement>* out_ = &result_.statements;
};

}  // namespace

RowStatements writeRowStatements(const Fusion& segment, const Analysis& analysis,
                                 const Space& space, const RowValues& values, const RowForm& form) {
  return StatementWriter(segment, analysis, space, values, form).write();
}

}  // namespace heddle::codegen
