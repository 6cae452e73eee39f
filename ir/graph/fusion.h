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
  bool user_sharding = false;           // the user wrote the sharding: passes keep it
  int line = 0;                         // in the source text; 0 if built in C++
  bool operator==(const Value&) const = default;
};

// Returns which kind of operand the value is in type promotion.
OperandKind kindOf(const Value& value);

struct Expression {
  const OpDef* op = nullptr;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<std::pair<std::string, Attr>> attrs;  // in the order of OpDef::attrs
  int line = 0;
  bool operator==(const Expression&) const = default;

  const Attr* find(std::string_view name) const;
  // Returns the attribute. InternalError if it is absent or has another type, which the builder has
  // excluded.
  template <class T>
  const T& attr(std::string_view name) const;
  // Returns the attribute "axis", which the builder has normalized. InternalError when absent.
  size_t axis() const { return static_cast<size_t>(attr<int64_t>("axis")); }
};

// Two sizes that must be equal at run time, and the tensors from which they come.
struct SizeGuard {
  Size a;
  Size b;
  std::string source;  // "axis 0 of %x and axis 0 of %y, operands of add at line 7"
  bool operator==(const SizeGuard&) const = default;
};

// A dataflow graph of tensor ops: a list of expressions in SSA form and execution order. Ids refer
// to values.
//
// Copies:  a plain value; a copy shares nothing.
// Checks:  FusionBuilder creates it and checks every op. Later users do not check it again.
// Threads: several threads may read it.
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

  // For passes, which may change the sharding and layout of a value, but not its dtype and domain.
  void setSharding(ValueId id, std::optional<Sharding> sharding);
  Layout& layout(ValueId id) { return values_.at(id).tensor.layout; }

  // Returns the expressions that read each value, in order. The index is the ValueId.
  IdVector<ValueId, std::vector<ExprId>> users() const;

  // For FusionBuilder only: these do not check anything.
  ValueId appendValue(Value value);
  ExprId appendExpr(Expression expr);
  void appendInput(ValueId id) { inputs_.push_back(id); }
  void appendOutput(ValueId id) { outputs_.push_back(id); }
  Value& mutableValue(ValueId id) { return values_.at(id); }

  // --- annotations -------------------------------------------------------------------------
  // Named, typed facts about the fusion, which its copies keep. A fact that contains ids of values
  // needs `remap`. It gets a function from old to new ids (nullopt: the value no longer exists) and
  // returns the fact with new ids, or nullopt to drop it.
  using IdMap = std::function<std::optional<ValueId>(ValueId)>;
  template <class T>
  using Remap = std::function<std::optional<T>(const T&, const IdMap&)>;

  template <class T>
  void annotate(const std::string& key, T fact, Remap<T> remap = nullptr);
  template <class T>
  std::optional<T> annotation(const std::string& key) const;  // nullopt: absent or another type
  void dropAnnotation(const std::string& key) { annotations_.erase(key); }

  // Copies the annotations of `from`, for passes that rebuild a fusion. It remaps or drops those
  // with a `remap` function, and copies the others unchanged.
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
//  and
//    the order of expressions.
//  - Ignored: ids, source lines, annotations and guards. The guards of ops follow from the ops, and
//    only composites add others.
bool sameGraph(const Fusion& a, const Fusion& b);

// Returns the values of symbols for a run: from the sizes of the inputs, else the defaults.
// `inputs` has the unsharded sizes of each input of the fusion; entries of scalars are ignored.
// UserError if a symbol gets two values (the error names both inputs), a constant extent differs,
// or a guard fails.
SizeBindings bindSizes(const Fusion& fusion, const std::vector<std::vector<int64_t>>& inputs);

// Checks the guards of the fusion with these sizes. UserError names both tensors of a failed guard.
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
