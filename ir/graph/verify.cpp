#include "ir/graph/verify.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "ir/base/check.h"
#include "ir/graph/builder.h"
#include "ir/graph/print_values.h"
#include "ir/graph/size_scalars.h"
#include "ir/sizes/scalar_values.h"

namespace heddle {
namespace {

class Verifier {
 public:
  explicit Verifier(const Fusion& fusion) : fusion_(fusion) {}

  // The order matters: some checks rely on earlier ones.
  void run() {
    meshes();
    names();
    ids();
    definitions();
    order();
    for (const Value& value : fusion_.values()) {
      domain(value);
      sharding(value);
      layout(value);
    }
    for (ExprId i : fusion_.exprs().ids()) replay(i);
    for (const std::string& key : fusion_.staleAnnotations()) {
      HEDDLE_CHECK(false, "annotation '{}' names a value that does not exist", key);
    }
  }

 private:
  bool exists(ValueId id) const { return fusion_.values().has(id); }
  const Expression& expr(ExprId i) const { return fusion_.expr(i); }
  std::string describe(ExprId i) const {
    return fmt::format("expression {} ({})", i, expr(i).op == nullptr ? "?" : expr(i).op->name);
  }

  void meshes() const {
    std::set<std::string> seen;
    for (const DeviceMesh& mesh : fusion_.meshes) {
      HEDDLE_CHECK(seen.insert(mesh.name).second, "two meshes are called @{}", mesh.name);
      HEDDLE_CHECK(!mesh.axes.empty(), "mesh @{} has no axes", mesh.name);
      std::set<MeshAxis> axes;
      for (const DeviceMesh::Axis& axis : mesh.axes) {
        HEDDLE_CHECK(axis.size > 0 || axis.size == DeviceMesh::kFromJob,
                     "mesh {}: axis {} has no devices", mesh.str(), name(axis.axis));
        HEDDLE_CHECK(axes.insert(axis.axis).second, "mesh {}: axis {} is listed twice", mesh.str(),
                     name(axis.axis));
      }
    }
  }

  void names() const {
    std::unordered_map<std::string, ValueId> seen;
    for (ValueId id : fusion_.values().ids()) {
      const std::string& name = fusion_.value(id).name;
      HEDDLE_CHECK(!name.empty(), "value {} has no name", id);
      auto [found, fresh] = seen.emplace(name, id);
      HEDDLE_CHECK(fresh, "values {} and {} are both called %{}", found->second, id, name);
    }
  }

  void ids() const {
    for (ValueId id : fusion_.inputs()) {
      HEDDLE_CHECK(exists(id), "an input is value {}, which does not exist", id);
    }
    for (ValueId id : fusion_.outputs()) {
      HEDDLE_CHECK(exists(id), "an output is value {}, which does not exist", id);
    }
    reuses();
    for (ExprId i : fusion_.exprs().ids()) {
      HEDDLE_CHECK(expr(i).op != nullptr, "expression {} has no op", i);
      HEDDLE_CHECK(expr(i).op == findOp(expr(i).op->name), "{}: its op is not of the op table",
                   describe(i));
      HEDDLE_CHECK(expr(i).outputs.size() == 1, "{} has {} outputs, expected 1", describe(i),
                   expr(i).outputs.size());
      for (ValueId id : expr(i).inputs) {
        HEDDLE_CHECK(exists(id), "{}: operand {} does not exist", describe(i), id);
      }
      HEDDLE_CHECK(exists(expr(i).outputs[0]), "{}: its output {} does not exist", describe(i),
                   expr(i).outputs[0]);
    }
  }

  void reuses() const {
    HEDDLE_CHECK(fusion_.reuses().size() == fusion_.outputs().size(), "{} reuses for {} outputs",
                 fusion_.reuses().size(), fusion_.outputs().size());
    std::set<ValueId> reused;
    for (size_t i = 0; i < fusion_.outputs().size(); ++i) {
      const std::optional<OutputReuse>& reuse = fusion_.reuses()[i];
      if (!reuse) continue;
      const Value& output = fusion_.value(fusion_.outputs()[i]);
      const std::vector<ValueId>& inputs = fusion_.inputs();
      const auto found = std::find(inputs.begin(), inputs.end(), reuse->input);
      HEDDLE_CHECK(found != inputs.end(), "%{} is stored in value {}, which is no input",
                   output.name, reuse->input);
      const Value& input = fusion_.value(*found);
      HEDDLE_CHECK(reused.insert(*found).second, "two outputs are stored in %{}", input.name);
      HEDDLE_CHECK(!output.is_scalar && !input.is_scalar &&
                       output.tensor.dtype == input.tensor.dtype &&
                       output.tensor.rank() == input.tensor.rank(),
                   "%{} is stored in %{}, which has a different type", output.name, input.name);
    }
  }

  // Checks that each value is defined exactly once: it is an input of the fusion, or the output of
  // the expression Value::definition.
  void definitions() const {
    IdVector<ValueId, int> defined(fusion_.values().size(), 0);
    for (ValueId id : fusion_.inputs()) {
      const Value& value = fusion_.value(id);
      HEDDLE_CHECK(++defined[id] == 1, "%{} is an input twice", value.name);
      HEDDLE_CHECK(value.definition == kNoExpr, "%{} is an input and defined by expression {}",
                   value.name, value.definition);
    }
    for (ExprId i : fusion_.exprs().ids()) {
      ValueId id = expr(i).outputs[0];
      const Value& value = fusion_.value(id);
      HEDDLE_CHECK(++defined[id] == 1, "%{} is defined twice, last by {}", value.name, describe(i));
      HEDDLE_CHECK(value.definition == i, "%{} is defined by {} but says expression {}", value.name,
                   describe(i), value.definition);
    }
    for (ValueId id : defined.ids()) {
      const Value& value = fusion_.value(id);
      HEDDLE_CHECK(defined[id] == 1, "%{} is neither an input nor defined", value.name);
      HEDDLE_CHECK(!value.default_value || (value.is_scalar && value.definition == kNoExpr),
                   "%{} has a default but is no scalar input", value.name);
    }
  }

  void order() const {
    for (ExprId i : fusion_.exprs().ids()) {
      for (ValueId id : expr(i).inputs) {
        const Value& value = fusion_.value(id);
        HEDDLE_CHECK(value.definition < i, "{} uses %{} before expression {} defines it",
                     describe(i), value.name, value.definition);
      }
    }
  }

  // --- shardings and layouts ---------------------------------------------------------------------

  void sharding(const Value& value) const {
    if (!value.tensor.sharding) {
      HEDDLE_CHECK(!value.user_sharding, "%{} has a user's sharding that is not there", value.name);
      return;
    }
    const Sharding& sharding = *value.tensor.sharding;
    HEDDLE_CHECK(!value.is_scalar, "%{} is a scalar and has a sharding", value.name);
    HEDDLE_CHECK(fusion_.meshes.has(sharding.mesh),
                 "%{}: its sharding is over mesh {}, the fusion has {} mesh(es)", value.name,
                 sharding.mesh, fusion_.meshes.size());
    HEDDLE_CHECK(sharding.axes.size() == value.tensor.rank(),
                 "%{}: its sharding has {} axes, the tensor {}", value.name, sharding.axes.size(),
                 value.tensor.rank());
    meshAxes(value, sharding);
    if (!sharding.stream) return;
    HEDDLE_CHECK(sharding.stream->axis >= 0 &&
                     static_cast<size_t>(sharding.stream->axis) < value.tensor.rank() &&
                     sharding.stream->chunks > 0,
                 "%{}: stream({}: {}) needs an axis of the tensor and at least one chunk",
                 value.name, sharding.stream->axis, sharding.stream->chunks);
  }

  void meshAxes(const Value& value, const Sharding& sharding) const {
    const DeviceMesh& mesh = fusion_.meshes[sharding.mesh];
    std::set<MeshAxis> used;
    auto use = [&](MeshAxis axis) {
      HEDDLE_CHECK(mesh.has(axis), "%{}: mesh {} has no axis {}", value.name, mesh.str(),
                   name(axis));
      HEDDLE_CHECK(used.insert(axis).second, "%{}: mesh axis {} is used twice", value.name,
                   name(axis));
    };
    for (size_t i = 0; i < sharding.axes.size(); ++i) {
      for (MeshAxis axis : sharding.axes[i]) use(axis);
      HEDDLE_CHECK(sharding.axes[i].empty() || value.tensor.domain[i].kind == IterKind::Iteration,
                   "%{}: axis {} is no iteration axis and is sharded", value.name, i);
    }
    for (const Sharding::Partial& partial : sharding.partial) {
      use(partial.axis);
      HEDDLE_CHECK(partial.op != ReduceOp::Avg || isFloat(value.tensor.dtype),
                   "%{}: partial(avg) of {}", value.name, name(value.tensor.dtype));
    }
  }

  void domain(const Value& value) const {
    HEDDLE_CHECK(!value.is_scalar || value.tensor.domain.empty(), "%{} is a scalar and has axes",
                 value.name);
    for (size_t i = 0; i < value.tensor.rank(); ++i) {
      const IterDomain& axis = value.tensor.domain[i];
      HEDDLE_CHECK(axis.kind != IterKind::Reduction, "%{}: axis {} of a tensor is a reduction axis",
                   value.name, i);
      HEDDLE_CHECK(axis.kind != IterKind::Broadcast || axis.extent.isConstant(1),
                   "%{}: the broadcast axis {} has the extent {}", value.name, i,
                   axis.extent.str());
    }
  }

  static bool isPermutation(AxisOrder order, size_t rank) {
    std::sort(order.begin(), order.end());
    return order == rowMajor(rank);
  }

  void layout(const Value& value) const {
    const Layout& layout = value.tensor.layout;
    const size_t rank = value.tensor.rank();
    auto check = [&](const AxisOrder& order, std::string_view which) {
      HEDDLE_CHECK(isPermutation(order, rank), "%{}: {} {} is no permutation of its {} axes",
                   value.name, which, str(order), rank);
    };
    if (layout.required) check(*layout.required, "required order");
    if (layout.needed) check(*layout.needed, "needed order");
    if (layout.hint) check(*layout.hint, "hinted order");
    if (!layout.observed) return;
    check(layout.observed->order, "observed order");
    HEDDLE_CHECK(layout.observed->contiguous.size() == rank, "%{}: {} contiguity flags for {} axes",
                 value.name, layout.observed->contiguous.size(), rank);
    HEDDLE_CHECK(value.definition == kNoExpr, "%{} is computed and has an observed layout",
                 value.name);
  }

  // --- types -------------------------------------------------------------------------------------

  // If an operand is a literal, appends the same literal to `builder`, because the rules of an op
  // may depend on the value of a literal. Returns nullopt for any other operand.
  std::optional<ValueId> literalAgain(FusionBuilder& builder, const Value& operand) const {
    if (operand.definition == kNoExpr) return std::nullopt;
    const Expression& definition = fusion_.expr(operand.definition);
    if (definition.op->kind != OpKind::Constant) return std::nullopt;
    return builder.apply("constant", {}, definition.attrs);
  }

  // Builds the op again and compares the result. FusionBuilder contains the rules of each op, so
  // the results must be equal.
  void replay(ExprId i) const {
    const Expression& old = expr(i);
    FusionBuilder builder("verify");
    builder.mutableFusion().symbolic_sizes = fusion_.symbolic_sizes;
    std::vector<ValueId> operands;
    for (size_t k = 0; k < old.inputs.size(); ++k) {
      const Value& operand = fusion_.value(old.inputs[k]);
      std::string name = fmt::format("operand{}", k);
      TensorView bare;
      bare.dtype = operand.tensor.dtype;
      bare.domain = operand.tensor.domain;
      const std::optional<ValueId> literal = literalAgain(builder, operand);
      operands.push_back(literal             ? *literal
                         : operand.is_scalar ? builder.scalarInput(name, bare.dtype)
                                             : builder.input(name, std::move(bare)));
    }
    const size_t literals = builder.fusion().exprs().size();
    try {
      builder.apply(old.op->name, operands, old.attrs);
    } catch (const UserError& error) {
      HEDDLE_CHECK(false, "{} that computes %{}: {}", describe(i),
                   fusion_.value(old.outputs[0]).name, error.what());
    }
    compare(i, operands, builder.fusion(), literals);
  }

  // Compares expression i with the last expression of the fusion `again`. `again` contains
  // `literals` constants before this expression.
  void compare(ExprId i, const std::vector<ValueId>& operands, const Fusion& again,
               size_t literals) const {
    const Value& value = fusion_.value(expr(i).outputs[0]);
    const Expression& last = again.exprs().back();
    HEDDLE_CHECK(again.exprs().size() == literals + 1 && last.inputs == operands,
                 "{} that computes %{}: its operands are not of equal rank or type", describe(i),
                 value.name);
    HEDDLE_CHECK(sameAttrs(last.attrs, expr(i).attrs),
                 "{} that computes %{}: its attributes are not as the builder writes them",
                 describe(i), value.name);
    const Value& fresh = again.value(last.outputs[0]);
    HEDDLE_CHECK(value.is_scalar == fresh.is_scalar, "%{}: {}, by the rules of {} it is {}",
                 value.name, value.is_scalar ? "a scalar" : "a tensor", expr(i).op->name,
                 fresh.is_scalar ? "a scalar" : "a tensor");
    TensorView got = value.tensor;
    got.sharding.reset();
    got.layout = Layout();
    HEDDLE_CHECK(got == fresh.tensor, "%{} is {}, by the rules of {} it is {}", value.name,
                 printTensorType(got, {}), expr(i).op->name, printTensorType(fresh.tensor, {}));
  }

  static bool sameAttrs(const std::vector<std::pair<std::string, Attr>>& a,
                        const std::vector<std::pair<std::string, Attr>>& b) {
    if (a == b) return true;
    // Compare the texts, because the text of NaN equals itself.
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      return x.first == y.first && x.second.index() == y.second.index() &&
             printAttr(x.second) == printAttr(y.second);
    });
  }

  const Fusion& fusion_;
};

}  // namespace

void verify(const Fusion& fusion) { Verifier(fusion).run(); }

namespace {

std::string named(const Value& value) {
  return value.line > 0 ? fmt::format("%{} at line {}", value.name, value.line) : "%" + value.name;
}

// Returns the value of the extent, or nullopt if one of its symbols has no value.
std::optional<int64_t> evaluateKnown(const Size& extent, const SizeBindings& sizes) {
  if (extent.isConstant()) return extent.constant();
  if (extent.kind() == Size::Kind::Symbol) {
    const auto found = sizes.find(extent.symbolName());
    return found == sizes.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<std::string> symbols;
  extent.collectSymbols(symbols);
  const auto isKnown = [&](const std::string& symbol) { return sizes.contains(symbol); };
  if (!std::all_of(symbols.begin(), symbols.end(), isKnown)) return std::nullopt;
  return extent.evaluate(lookupIn(sizes));
}

// Returns evaluateKnown() of one extent. Throws UserError if it overflows or is negative.
std::optional<int64_t> checkedExtent(const Value& value, size_t axis, const SizeBindings& sizes) {
  const Size& extent = value.tensor.domain[axis].extent;
  std::optional<int64_t> n;
  try {
    n = evaluateKnown(extent, sizes);
  } catch (const UserError& error) {
    userErrorWith(error.code(), "axis {} of {}: {}", axis, named(value), error.what());
  }
  HEDDLE_USER_CHECK(!n || *n >= 0, "axis {} of {} has the size {} = {}{}", axis, named(value),
                    extent.str(), *n, scalarValuesIn({extent}, sizes));
  return n;
}

void checkSizes(const Value& value, const SizeBindings& sizes) {
  int64_t bytes = sizeOf(value.tensor.dtype);
  bool fits = true, is_known = true;
  for (size_t i = 0; i < value.tensor.rank(); ++i) {
    const std::optional<int64_t> n = checkedExtent(value, i, sizes);
    is_known = is_known && n.has_value();
    fits = fits && !__builtin_mul_overflow(bytes, std::max<int64_t>(n.value_or(1), 1), &bytes);
  }
  if (fits || !is_known) return;
  std::vector<int64_t> extents;
  for (const Size& n : value.tensor.sizes()) extents.push_back(n.evaluate(lookupIn(sizes)));
  userError("{} of {} does not fit in 64 bits{}", named(value), str(extents),
            scalarValuesIn(value.tensor.sizes(), sizes));
}

// Returns whether the extents of `a`, except extents of 1, occur in `b` in the same order, and the
// elements of `a` are not larger. Valid sizes of `b` then imply valid sizes of `a`.
bool hasSizesOf(const TensorView& a, const TensorView& b) {
  if (sizeOf(a.dtype) > sizeOf(b.dtype)) return false;
  auto next = b.domain.begin();
  for (const IterDomain& axis : a.domain) {
    if (axis.extent.isConstant(1)) continue;
    const auto is_equal = [&](const IterDomain& other) { return other.extent == axis.extent; };
    next = std::find_if(next, b.domain.end(), is_equal);
    if (next == b.domain.end()) return false;
    ++next;
  }
  return true;
}

}  // namespace

bool hasOnlySizesOfOperands(const Fusion& fusion) {
  const Value* operand = nullptr;  // the last input or output so far
  for (ValueId id : fusion.values().ids()) {
    const Value& value = fusion.value(id);
    if (value.is_scalar) continue;
    if (value.definition == kNoExpr || std::ranges::count(fusion.outputs(), id) > 0) {
      operand = &value;
    } else if (operand == nullptr || !hasSizesOf(value.tensor, operand->tensor)) {
      return false;
    }
  }
  return true;
}

void checkSizes(const Fusion& fusion, const SizeBindings& sizes) {
  const Value* checked = nullptr;
  for (const Value& value : fusion.values()) {
    // Most tensors have the sizes of the tensor that was checked last.
    if (value.is_scalar || (checked != nullptr && hasSizesOf(value.tensor, checked->tensor))) {
      continue;
    }
    checkSizes(value, sizes);
    checked = &value;
  }
}

}  // namespace heddle
