#include "codegen/families/row_statements.h"

#include <algorithm>

#include "ir/analysis/indexed_axes.h"
#include "ir/base/error.h"

namespace heddle::codegen {
namespace {

class StatementWriter {
 public:
  StatementWriter(const Fusion& segment, const Analysis& analysis, const Space& space,
                  const RowValues& values, const std::vector<ValueId>& kept, bool looped)
      : segment_(segment),
        analysis_(analysis),
        space_(space),
        values_(values),
        looped_(looped),
        tensor_of_(tensorsOfOperands(segment, space)),
        tile_of_(segment.values().size(), -1),
        kept_(segment.values().size(), false) {
    for (ValueId id : kept) kept_[id] = true;
    for (ExprId id : analysis.reductions) {
      result_.accumulators.push_back(makeAccumulator(segment, segment.expr(id), 0));
    }
  }

  RowStatements write() {
    loadInputs([&](ValueId id, const SpaceTensor& tensor) {
      return values_.per_row[id] || (!looped_ && changesWithRow(tensor));
    });
    for (int pass = 0; pass < values_.passes(); ++pass) writePass(pass);
    storeRowOutputs();
    return std::move(result_);
  }

 private:
  bool changesWithRow(const SpaceTensor& tensor) const {
    return std::any_of(tensor.strides.begin(), tensor.strides.begin() + space_.kept,
                       [](int64_t stride) { return stride != 0; });
  }

  std::vector<Statement>& out() { return *out_; }

  int makeTile(ValueId id) {
    result_.tiles.push_back(
        {segment_.value(id).name, segment_.tensor(id).dtype, values_.per_row[id]});
    return tile_of_[id] = static_cast<int>(result_.tiles.size()) - 1;
  }

  // Loads the tensor inputs for which `wanted` returns true and which have no tile yet.
  template <class Wanted>
  void loadInputs(const Wanted& wanted) {
    for (size_t i = 0; i < segment_.inputs().size(); ++i) {
      const ValueId id = segment_.inputs()[i];
      const int tensor = tensor_of_[i];
      if (tensor < 0 || tile_of_[id] >= 0) continue;
      if (!wanted(id, space_.tensors[static_cast<size_t>(tensor)])) continue;
      if (out_ == &result_.statements && !values_.per_row[id] &&
          changesWithRow(space_.tensors[static_cast<size_t>(tensor)])) {
        result_.loaded += sizeOf(segment_.tensor(id).dtype);
      }
      out().push_back(LoadTile{tensor, makeTile(id)});
    }
  }

  std::optional<Node> leaf(ValueId id) const {
    if (tile_of_[id] >= 0) {
      Node node;
      node.kind = Node::Kind::Load;
      node.dtype = segment_.tensor(id).dtype;
      node.index = tile_of_[id];
      return node;
    }
    std::optional<Node> node = inputNode(segment_, tensor_of_, id);
    HEDDLE_CHECK(!node || node->kind == Node::Kind::Scalar, "%{} is read before it is loaded",
                 segment_.value(id).name);
    return node ? node : resultNode(segment_, analysis_, id);
  }

  WrittenBody bodyOf(const std::vector<ValueId>& wanted) const {
    return writeBody(segment_, analysis_, space_, wanted, [this](ValueId id) { return leaf(id); });
  }

  // Returns whether some op computes the value from its leaves. A broadcast of a leaf is no op.
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

  // The values per row that the pass reads along the row and that some op computes.
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
    WrittenBody written = bodyOf(made);
    MapTiles map{std::move(written.body), {}, per_row};
    for (ValueId id : made) {
      const int node = written.node_of[id];
      map.results.push_back({node, makeTile(id)});
    }
    out().push_back(std::move(map));
  }

  // The tensors along the row that the pass reads and that have no tile yet.
  void loadFor(const std::vector<ValueId>& along_row) {
    IdVector<ValueId, bool> read(segment_.values().size(), false);
    for (ValueId id : along_row) {
      const Expression& expr = segment_.expr(segment_.value(id).definition);
      for (size_t i = 0; i < expr.inputs.size(); ++i) {
        if (!isIndexed(expr, i)) read[expr.inputs[i]] = true;
      }
    }
    loadInputs([&](ValueId id, const SpaceTensor&) { return read[id]; });
  }

  void writePass(int pass) {
    const auto p = static_cast<size_t>(pass);
    const bool last = pass + 1 == values_.passes();
    if (last && values_.roots[p].empty()) return;
    // An input is a root if a reduction reads it directly.
    IdVector<ValueId, bool> leaves(segment_.values().size(), false);
    for (ValueId id : segment_.values().ids()) leaves[id] = kept_[id] && tile_of_[id] >= 0;
    const std::vector<ValueId> along_row = computedAlongRow(segment_, values_, pass, leaves);
    writeMap(rowValuesFor(along_row), true);
    LoopOverRow loop;
    const IdVector<ValueId, int> before = tile_of_;
    if (looped_) out_ = &loop.statements;
    loadFor(along_row);
    loadInputs([&](ValueId id, const SpaceTensor&) {
      return std::count(values_.roots[p].begin(), values_.roots[p].end(), id) > 0;
    });
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
    if (looped_) {
      tile_of_ = before;
      out().push_back(std::move(loop));
    }
    if (!last) out().push_back(CombineParts{accumulatorsOf(p)});
  }

  std::vector<int> accumulatorsOf(size_t pass) const {
    std::vector<int> accumulators;
    for (ExprId id : values_.reductions[pass]) {
      accumulators.push_back(resultNode(segment_, analysis_, segment_.expr(id).outputs[0])->index);
    }
    return accumulators;
  }

  void reduce(size_t pass) {
    WrittenBody written = bodyOf(values_.roots[pass]);
    for (ExprId id : values_.reductions[pass]) {
      const Expression& expr = segment_.expr(id);
      const int a = resultNode(segment_, analysis_, expr.outputs[0])->index;
      result_.accumulators[static_cast<size_t>(a)].element = written.node_of[expr.inputs[0]];
    }
    out().push_back(ReduceTiles{std::move(written.body), accumulatorsOf(pass)});
  }

  void storeOutputs(const std::vector<ValueId>& outputs, bool per_row) {
    if (outputs.empty()) return;
    WrittenBody written = bodyOf(outputs);
    for (size_t i = 0; i < segment_.outputs().size(); ++i) {
      const ValueId id = segment_.outputs()[i];
      if (values_.per_row[id] != per_row) continue;
      written.body.stores.push_back(
          {written.node_of[id], tensor_of_[segment_.inputs().size() + i]});
    }
    out().push_back(MapTiles{std::move(written.body), {}, per_row});
  }

  // After the last pass: an output may have the memory of an input.
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
  const bool looped_;
  const std::vector<int> tensor_of_;
  IdVector<ValueId, int> tile_of_;  // -1: the value has no tile
  IdVector<ValueId, bool> kept_;
  RowStatements result_;
  std::vector<Statement>* out_ = &result_.statements;
};

}  // namespace

RowStatements writeRowStatements(const Fusion& segment, const Analysis& analysis,
                                 const Space& space, const RowValues& values,
                                 const std::vector<ValueId>& kept, bool looped) {
  return StatementWriter(segment, analysis, space, values, kept, looped).write();
}

}  // namespace heddle::codegen
