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
  std::optional<Scalar> default_value;  // inputs that are scalars
  ExprId definition = kNoExpr;          // kNoExpr: an input
  bool user_sharding = false;           // the sharding was written by the user: passes keep it
  int line = 0;                         // of the text it came from; 0 when built in C++
  bool operator==(const Value&) const = default;
};

// As what the value counts where types are promoted.
OperandKind kindOf(const Value& value);

struct Expression {
  const OpDef* op = nullptr;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<std::pair<std::string, Attr>> attrs;  // in the order of OpDef::attrs
  int line = 0;
  bool operator==(const Expression&) const = default;

  const Attr* find(std::string_view name) const;
  // InternalError when absent or of another type: the builder has checked.
  template <class T>
  const T& attr(std::string_view name) const;
  // Returns the attribute "axis", which the builder has normalized. InternalError when absent.
  size_t axis() const { return static_cast<size_t>(attr<int64_t>("axis")); }
};

// Two sizes that must be equal at run time, and the tensors they came from.
struct SizeGuard {
  Size a;
  Size b;
  std::string source;  // "axis 0 of %x and axis 0 of %y, operands of add at line 7"
  bool operator==(const SizeGuard&) const = default;
};

// A dataflow graph of tensor ops: an SSA list of expressions in execution order over values named
// by ids. A plain value: a copy shares nothing. Made by FusionBuilder, which checks every op;
// nobody re-checks afterwards. Reading from several threads is safe, as with any const object.
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

  // For passes: the sharding and layout of a value may change, its dtype and domain may not.
  void setSharding(ValueId id, std::optional<Sharding> sharding);
  Layout& layout(ValueId id) { return values_.at(id).tensor.layout; }

  // Users of each value, in order of expression.
  IdVector<ValueId, std::vector<ExprId>> users() const;

  // For FusionBuilder only: append without a check.
  ValueId appendValue(Value value);
  ExprId appendExpr(Expression expr);
  void appendInput(ValueId id) { inputs_.push_back(id); }
  void appendOutput(ValueId id) { outputs_.push_back(id); }
  Value& mutableValue(ValueId id) { return values_.at(id); }

  // --- annotations -------------------------------------------------------------------------
  // Named, typed facts that ride along: they survive copies of the Fusion. `remap` is for facts
  // that name values: called with a function old id -> new id (nullopt: the value is gone), it
  // returns the fact in new ids, or nullopt to drop it.
  using IdMap = std::function<std::optional<ValueId>(ValueId)>;
  template <class T>
  using Remap = std::function<std::optional<T>(const T&, const IdMap&)>;

  template <class T>
  void annotate(const std::string& key, T fact, Remap<T> remap = nullptr);
  template <class T>
  std::optional<T> annotation(const std::string& key) const;  // nullopt: absent or another type
  void dropAnnotation(const std::string& key) { annotations_.erase(key); }

  // Copies the annotations of `from`, remapped or dropped; for passes that rebuild a Fusion. An
  // annotation without a remap hook is copied as it is.
  void inheritAnnotations(const Fusion& from, const IdMap& map);

  // Keys of annotations that name a value which does not exist.
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

// Same graph: names, ops, attributes (nan equals nan), types, shardings, layouts, meshes, defaults,
// order of expressions. Ids, source lines and annotations do not count, nor do guards: those of the
// ops follow from the ops, and a composite may have checked more.
bool sameGraph(const Fusion& a, const Fusion& b);

// Values the sizes of a run: the symbols bound by input sizes, falling back to the defaults.
// `inputs` holds unsharded logical sizes per fusion input (ignored for scalars). UserError when one
// symbol gets two values (both inputs are named), a constant extent disagrees, or a guard fails.
SizeBindings bindSizes(const Fusion& fusion, const std::vector<std::vector<int64_t>>& inputs);

// Checks the guards of the fusion under `bindings`; UserError names both sources.
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
