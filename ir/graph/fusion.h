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
#include "ir/types/mesh.h"
#include "ir/types/tensor.h"

namespace heddle {

using ValueId = Id<struct ValueTag>;      // index into Fusion::values()
using ExprId = Id<struct ExpressionTag>;  // index into Fusion::exprs()
inline constexpr ValueId kNoValue;
inline constexpr ExprId kNoExpr;

// An SSA value: a tensor, or a scalar that lives on the host.
struct Value {
  std::string name;  // without the '%', unique in its fusion
  bool is_scalar = false;
  TensorView tensor;                    // a scalar uses only tensor.dtype
  std::optional<Scalar> default_value;  // of an input that is a scalar
  ExprId definition = kNoExpr;          // kNoExpr: an input
  bool user_sharding = false;           // true: the user wrote the sharding; passes keep it
  int line = 0;                         // in the source text; 0 if built in C++
  bool operator==(const Value&) const = default;
};

// Returns the kind of operand that the value is for promoteOperands() (ir/ops/op.h).
OperandKind kindOf(const Value& value);

struct Expression {
  const OpDef* op = nullptr;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<std::pair<std::string, Attr>> attrs;  // in the order of OpDef::attrs
  int line = 0;
  bool operator==(const Expression&) const = default;

  const Attr* find(std::string_view name) const;
  // Returns the attribute. InternalError if it is absent or has another type. The builder ensures
  // that neither happens.
  template <class T>
  const T& attr(std::string_view name) const;
  // Returns the attribute "axis", which the builder has normalized. InternalError when absent.
  size_t axis() const { return static_cast<size_t>(attr<int64_t>("axis")); }
};

// A condition that every run checks: two sizes must be equal. `source` names the tensors from which
// the sizes come.
struct SizeGuard {
  Size a;
  Size b;
  std::string source;  // "axis 0 of %x and axis 0 of %y, operands of add at line 7"
  bool operator==(const SizeGuard&) const = default;
};

// A dataflow graph of tensor ops: a list of expressions in SSA form and in execution order.
//
// Copies:  a copy shares nothing with the original.
// Checks:  FusionBuilder (ir/graph/builder.h) creates a Fusion and checks every op. Functions that
//          take a Fusion do not check it again.
// Threads: several threads may read a Fusion at the same time.
class Fusion {
 public:
  std::string name = "main";
  Meshes meshes;
  std::vector<std::pair<std::string, int64_t>> size_defaults;  // `with t = 4096`
  std::vector<SizeGuard> guards;

  const IdVector<ValueId, Value>& values() const { return values_; }
  const IdVector<ExprId, Expression>& exprs() const { return exprs_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }

  const Value& value(ValueId id) const { return values_.at(id); }
  const Expression& expr(ExprId id) const { return exprs_.at(id); }
  const TensorView& tensor(ValueId id) const { return value(id).tensor; }
  std::optional<ValueId> find(std::string_view name) const;

  // For passes. A pass may change the sharding and the layout of a value, but not its dtype and
  // domain.
  void setSharding(ValueId id, std::optional<Sharding> sharding);
  Layout& layout(ValueId id) { return values_.at(id).tensor.layout; }

  // Returns, for each value, the expressions that read it, in execution order.
  IdVector<ValueId, std::vector<ExprId>> users() const;

  // Returns, for each value, whether it is an output.
  IdVector<ValueId, bool> outputFlags() const;

  // For FusionBuilder only. These functions check nothing.
  ValueId appendValue(Value value);
  ExprId appendExpr(Expression expr);
  void appendInput(ValueId id) { inputs_.push_back(id); }
  void appendOutput(ValueId id) { outputs_.push_back(id); }
  Value& mutableValue(ValueId id) { return values_.at(id); }

  // --- annotations -------------------------------------------------------------------------
  // Annotations are named, typed facts about the fusion. Copies of the fusion keep them. A pass
  // that rebuilds the fusion changes the ids of values, so a fact that contains ids needs a `remap`
  // function. Its argument `IdMap` returns the new id of an old one, or nullopt if the value no
  // longer exists. `remap` returns the fact with new ids, or nullopt to drop the fact.
  using IdMap = std::function<std::optional<ValueId>(ValueId)>;
  template <class T>
  using Remap = std::function<std::optional<T>(const T&, const IdMap&)>;

  template <class T>
  void annotate(const std::string& key, T fact, Remap<T> remap = nullptr);
  template <class T>
  std::optional<T> annotation(const std::string& key) const;  // nullopt: absent or another type
  void dropAnnotation(const std::string& key) { annotations_.erase(key); }

  // Copies the annotations of `from`; for passes that rebuild a fusion. Annotations with a `remap`
  // function are remapped or dropped. The others are copied unchanged.
  void inheritAnnotations(const Fusion& from, const IdMap& map);

  // Returns the keys of annotations that refer to a value which does not exist.
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
  std::map<std::string, Annotation> annotations_;
};

// Returns whether two fusions are the same graph.
//  - Compared: names, ops, attributes (NaN equals NaN), types, shardings, layouts, meshes, defaults
//    and the order of expressions.
//  - Ignored: ids, source lines, annotations and guards. Most guards follow from the ops; only
//    composites add others.
bool sameGraph(const Fusion& a, const Fusion& b);

// Returns the values of symbols for a run. A value comes from the sizes of the inputs, or from the
// size defaults if no input gives it. `inputs` has the unsharded sizes of each input of the fusion;
// the entries of scalars are ignored. UserError in these cases:
//  - Two inputs give a symbol different values. The error names both inputs.
//  - An input has another size than the constant extent that the fusion declares.
//  - A guard fails.
SizeBindings bindSizes(const Fusion& fusion, const std::vector<std::vector<int64_t>>& inputs);

// Checks the guards of the fusion with these sizes. Throws UserError with both tensors of the first
// guard that fails.
void checkGuards(const Fusion& fusion, const SizeBindings& bindings);

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
