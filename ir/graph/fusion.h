#pragma once

#include <any>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/base/id.h"
#include "ir/ops/op.h"
#include "ir/sizes/size_guard.h"
#include "ir/sizes/symbolic_sizes.h"
#include "ir/types/mesh.h"
#include "ir/types/tensor.h"

namespace heddle {

using ValueId = Id<struct ValueTag>;      // index into Fusion::values()
using ExprId = Id<struct ExpressionTag>;  // index into Fusion::exprs()
inline constexpr ValueId kNoValue;
inline constexpr ExprId kNoExpr;

// An SSA value: a tensor, or a scalar in host memory.
struct Value {
  std::string name;  // without the '%', unique in its fusion
  bool is_scalar = false;
  TensorView tensor;                    // a scalar uses only tensor.dtype
  std::optional<Scalar> default_value;  // only a scalar input may have one
  ExprId definition = kNoExpr;          // the expression that computes it; kNoExpr: an input
  // true: the user wrote the sharding, so passes that choose shardings keep it.
  bool user_sharding = false;
  int line = 0;  // line in the source text; 0: built in C++
  // Only for a scalar input: the size that its value must equal in every run.
  std::optional<Size> equals = {};
  bool operator==(const Value&) const = default;
};

// Returns the OperandKind that promoteOperands() (ir/ops/op.h) needs for this value.
OperandKind kindOf(const Value& value);

// One op applied to operands. `outputs` has exactly one value.
struct Expression {
  const OpDef* op = nullptr;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<std::pair<std::string, Attr>> attrs;  // in the order of OpDef::attrs
  int line = 0;
  bool operator==(const Expression&) const = default;

  const Attr* find(std::string_view name) const;
  // Returns the attribute. Throws InternalError if it is absent or has a type other than T.
  // FusionBuilder checks attributes, so this error is a bug in heddle.
  template <class T>
  const T& attr(std::string_view name) const;
  // Returns the attribute "axis", which is never negative. Throws InternalError if it is absent.
  size_t axis() const { return static_cast<size_t>(attr<int64_t>("axis")); }
};

// States that an output is stored in the memory of an input: `return %w1 in %w`. The tensor that
// the caller passes for this input then holds the result.
struct OutputReuse {
  ValueId input;
  // false: if heddle must compute the output in other memory, it copies the output to the input at
  // the end. true (`in! %w`): this is an error instead.
  bool required = false;
  bool operator==(const OutputReuse&) const = default;
};

// A dataflow graph of tensor ops: a list of expressions in SSA form and in execution order.
//
// Copies:  a copy shares no mutable data with the original.
// Checks:  FusionBuilder (ir/graph/builder.h) creates a Fusion and checks every op. Compiling
//          checks the complete Fusion. All other functions rely on these checks.
// Threads: several threads may read a Fusion at the same time.
class Fusion {
 public:
  std::string name = "main";
  Meshes meshes;
  std::vector<std::pair<std::string, int64_t>> size_defaults;  // values of symbols: `with t = 4096`
  std::vector<SizeGuard> guards;
  // The symbols of sizes that may be 1 in a run, such as n in `f32[n?]`, in the order of their
  // declaration. An axis with such an extent is symbolic (IterKind::Symbolic): it broadcasts in a
  // run in which its extent is 1. When heddle compiles for a run, it decides which of these extents
  // are 1, and clears this list.
  SymbolicSizes symbolic_sizes;

  const IdVector<ValueId, Value>& values() const { return values_; }
  const IdVector<ExprId, Expression>& exprs() const { return exprs_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  // Returns one entry per output; nullopt: the user did not ask to store the output in an input.
  const std::vector<std::optional<OutputReuse>>& reuses() const { return reuses_; }
  // Returns the memory order that the user requires for each output, in the order of outputs().
  // nullopt: any order. A value may be several outputs, each with its own order. The pass
  // requireOrders gives each output a value in this order.
  const std::vector<std::optional<AxisOrder>>& outputOrders() const { return output_orders_; }

  const Value& value(ValueId id) const { return values_.at(id); }
  const Expression& expr(ExprId id) const { return exprs_.at(id); }
  const TensorView& tensor(ValueId id) const { return value(id).tensor; }
  std::optional<ValueId> find(std::string_view name) const;

  // The sharding and the layout of a value may change after FusionBuilder has created it. The dtype
  // and the domain do not change, except that compiling replaces symbols in extents.
  void setSharding(ValueId id, std::optional<Sharding> sharding);
  Layout& layout(ValueId id) { return values_.at(id).tensor.layout; }

  // Returns, for each value, the expressions that read it, in execution order.
  IdVector<ValueId, std::vector<ExprId>> users() const;

  // Returns, for each value, whether it is an output.
  IdVector<ValueId, bool> outputFlags() const;

  // These functions check nothing. Use FusionBuilder instead.
  ValueId appendValue(Value value);
  ExprId appendExpr(Expression expr);
  void appendInput(ValueId id) { inputs_.push_back(id); }
  void appendOutput(ValueId id, std::optional<AxisOrder> order = {},
                    std::optional<OutputReuse> reuse = {}) {
    outputs_.push_back(id);
    reuses_.push_back(reuse);
    output_orders_.push_back(std::move(order));
  }
  // Replaces output `index` by another value of the same type.
  void replaceOutput(size_t index, ValueId id) { outputs_.at(index) = id; }
  void setOutputOrder(size_t index, AxisOrder order) {
    output_orders_.at(index) = std::move(order);
  }
  Value& mutableValue(ValueId id) { return values_.at(id); }
  Expression& mutableExpr(ExprId id) { return exprs_.at(id); }

  // --- annotations -------------------------------------------------------------------------
  // Annotations are named, typed facts about the fusion. Copies of the fusion keep them. A pass
  // that rebuilds the fusion changes the ids of values. A fact that contains ids therefore needs a
  // `remap` function. `remap` receives the fact and an IdMap. It returns the fact with the new ids,
  // or nullopt to drop the fact. The IdMap returns the new id of an old id, or nullopt if the value
  // no longer exists.
  using IdMap = std::function<std::optional<ValueId>(ValueId)>;
  template <class T>
  using Remap = std::function<std::optional<T>(const T&, const IdMap&)>;

  template <class T>
  void annotate(const std::string& key, T fact, Remap<T> remap = nullptr);
  template <class T>
  std::optional<T> annotation(const std::string& key) const;  // nullopt: absent, or not of type T
  void dropAnnotation(const std::string& key) { annotations_.erase(key); }

  // Copies the annotations of `from`. A pass that rebuilds a fusion calls this. Annotations with a
  // `remap` function are remapped or dropped. All other annotations are copied unchanged.
  void inheritAnnotations(const Fusion& from, const IdMap& map);

  // Returns the keys of annotations whose facts contain ids of values that do not exist.
  std::vector<std::string> staleAnnotations() const;

 private:
  struct Annotation {
    std::any fact;
    std::function<std::optional<std::any>(const std::any&, const IdMap&)> remap;
  };
  IdVector<ValueId, Value> values_;
  IdVector<ExprId, Expression> exprs_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::vector<std::optional<OutputReuse>> reuses_;       // parallel to outputs_
  std::vector<std::optional<AxisOrder>> output_orders_;  // parallel to outputs_
  std::map<std::string, Annotation> annotations_;
};

// Returns whether two fusions are the same graph.
//  - Compared: names, ops, attributes (NaN equals NaN), types, shardings, layouts, meshes,
//    defaults, Value::equals, symbolic sizes, reused inputs, memory orders of outputs and the order
//    of expressions.
//  - Ignored: ids, source lines, annotations and guards.
bool sameGraph(const Fusion& a, const Fusion& b);

// Returns the values of the symbols of a fusion for a run. The value of a symbol comes from the
// sizes of the inputs. If no input determines it, it comes from size_defaults. `inputs` has the
// unsharded sizes of each input of the fusion; the entries of scalars are ignored. Throws UserError
// in these cases:
//  - The number of inputs, or the number of axes of an input, is wrong.
//  - Two axes of inputs give a symbol different values. The error names both axes.
//  - The size of an input differs from the extent that the fusion declares, or the extent has no
//    value.
//  - A guard fails.
// `scalars` has the values of the scalars that sizes contain, such as `%n`.
SizeBindings bindSizes(const Fusion& fusion, const std::vector<std::vector<int64_t>>& inputs,
                       const SizeBindings& scalars = {});

// --- implementation of templates ---------------------------------------------------------------

[[noreturn]] void throwBadAttr(const Expression& expr, std::string_view name);

template <class T>
const T& Expression::attr(std::string_view name) const {
  const Attr* found = find(name);
  const T* typed = found == nullptr ? nullptr : std::get_if<T>(found);
  if (typed == nullptr) throwBadAttr(*this, name);
  return *typed;
}

template <class T>
void Fusion::annotate(const std::string& key, T fact, Remap<T> remap) {
  Annotation annotation;
  annotation.fact = std::move(fact);
  if (remap) {
    annotation.remap = [remap](const std::any& old, const IdMap& map) -> std::optional<std::any> {
      std::optional<T> moved = remap(std::any_cast<const T&>(old), map);
      if (!moved) return std::nullopt;
      return std::any(std::move(*moved));
    };
  }
  annotations_[key] = std::move(annotation);
}

template <class T>
std::optional<T> Fusion::annotation(const std::string& key) const {
  auto found = annotations_.find(key);
  if (found == annotations_.end()) return std::nullopt;
  const T* fact = std::any_cast<T>(&found->second.fact);
  return fact == nullptr ? std::nullopt : std::optional<T>(*fact);
}

}  // namespace heddle
