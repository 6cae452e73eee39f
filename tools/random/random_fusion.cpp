#include "tools/random/random_fusion.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "ir/base/error.h"
#include "ir/graph/builder.h"
#include "tools/random/bounds.h"
#include "tools/random/choices.h"
#include "tools/random/random_ops.h"

namespace heddle::random {
namespace {

bool hasBigValues(double v) { return std::fabs(v) > 1e6; }

// Returns whether a value is worth keeping: enough elements can be compared, and not too many are
// NaN, infinite or very large. Keeps some values at random that break the second condition, and
// some values without elements.
bool isUseful(const Bounded& bounded, Choices& choices) {
  const auto count = static_cast<double>(bounded.errors.size());
  if (count == 0) return choices.oneIn(3);
  const double limit = conditionLimit(bounded.value.dtype);
  double vague = 0;
  double strange = 0;
  for (int64_t i = 0; i < bounded.value.numel(); ++i) {
    const double v = toDouble(bounded.value.at(i));
    const double e = bounded.errors[i];
    vague += e > 0 && !(e <= limit * std::max(1.0, std::fabs(v)));
    strange += isFloat(bounded.value.dtype) && (!std::isfinite(v) || hasBigValues(v));
  }
  return vague <= 0.04 * count && (strange <= 0.3 * count || choices.oneIn(20));
}

// Returns whether the op computes integers from a float operand that contains NaN or a magnitude of
// 100 or more. The integer type may be unable to represent such values.
bool isWildCast(const Fusion& fusion, const Expression& expr,
                const std::vector<const Bounded*>& operands) {
  const DType to = fusion.tensor(expr.outputs[0]).dtype;
  if (isFloat(to) || to == DType::Bool) return false;
  for (const Bounded* operand : operands) {
    if (!isFloat(operand->value.dtype)) continue;
    for (int64_t i = 0; i < operand->value.numel(); ++i) {
      const double v = toDouble(operand->value.at(i));
      if (!(std::fabs(v) < 100)) return true;
    }
  }
  return false;
}

class Generator {
 public:
  Generator(uint64_t seed, const GeneratorOptions& options)
      : options_(options), choices_(seed * 0x9E3779B97F4A7C15u + 1), builder_("random") {}

  FusionCase make() {
    makeSizes();
    makeInputs();
    const int64_t ops = choices_.between(options_.min_ops, options_.max_ops);
    // Make small fusions more frequent than a uniform choice does.
    const int64_t wanted = choices_.oneIn(2) ? ops : std::min<int64_t>(ops, 5 + ops % 12);
    for (int64_t tries = 0; made_ < wanted && tries < 30 * wanted; ++tries) tryOp();
    makeOutputs();
    FusionCase made;
    made.fusion = std::move(builder_).build();
    made.inputs = std::move(inputs_);
    made.sizes = std::move(sizes_);
    made.layouts = std::move(layouts_);
    return made;
  }

 private:
  void makeSizes() {
    const bool constants = choices_.oneIn(4);
    const bool has_zero = choices_.oneIn(25);
    const char* const symbols[] = {"a", "b", "c", "d"};
    for (const char* symbol : symbols) {
      int64_t size = choices_.pick<int64_t>({1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 33});
      if (has_zero && symbol == symbols[1]) size = 0;
      extents_.push_back(constants ? Size(size) : Size::symbol(symbol));
      builder_.sizeDefault(symbol, size);
      sizes_[symbol] = size;
    }
    if (choices_.oneIn(3)) extents_.emplace_back(choices_.between(1, 70));
  }

  std::vector<int64_t> numbers(const std::vector<Size>& sizes) const {
    std::vector<int64_t> result;
    for (const Size& size : sizes) result.push_back(size.evaluate(lookupIn(sizes_)));
    return result;
  }

  void makeInputs() {
    const int64_t tensors = choices_.between(1, 5);
    const bool special = choices_.oneIn(3);
    for (int64_t i = 0; i < tensors; ++i) {
      std::vector<Size> sizes;
      int64_t elements = 1;
      for (int64_t rank = choices_.pick<int64_t>({0, 1, 2, 2, 2, 3, 3, 4}); rank > 0; --rank) {
        Size size = choices_.oneIn(8) ? Size(1) : choices_.pick(extents_);
        const int64_t number = size.evaluate(lookupIn(sizes_));
        if (elements * number > options_.max_elements) continue;
        elements *= number;
        sizes.push_back(std::move(size));
      }
      addTensor("x" + std::to_string(i), randomDType(choices_), std::move(sizes), special);
    }
    for (int64_t scalars = choices_.below(3); scalars > 0; --scalars) {
      const DType dtype = choices_.pick({DType::F64, DType::F32, DType::I64, DType::Bool});
      const Scalar value = randomScalar(choices_, dtype);
      const std::string name = "s" + std::to_string(scalars);
      const ValueId id = builder_.scalarInput(
          name, dtype, choices_.oneIn(2) ? std::optional<Scalar>(value) : std::nullopt);
      inputs_.scalars[id] = value;
      layouts_.emplace_back();
      evaluateInput(id);
    }
  }

  void addTensor(const std::string& name, DType dtype, std::vector<Size> sizes, bool special) {
    HostTensor values = randomValues(choices_, dtype, numbers(sizes), special);
    InputLayout layout{stridesFor(values.sizes, rowMajor(values.sizes.size())), 0};
    if (options_.layouts && choices_.oneIn(2)) layout = randomLayout(choices_, values);
    const ValueId id = builder_.input(name, dtype, std::move(sizes));
    inputs_.tensors[id] = std::move(values);
    layouts_.push_back(std::move(layout));
    evaluateInput(id);
  }

  void evaluateInput(ValueId id) {
    const ReferenceContext context{builder_.fusion(), inputs_, sizes_};
    keep(id, exactly(inputValue(context, id)));
  }

  void keep(ValueId id, Bounded bounded) {
    values_.resize(std::max(values_.size(), id.index() + 1));
    values_[id] = std::make_shared<Bounded>(std::move(bounded));
  }

  void tryOp() {
    FusionBuilder trial = builder_;
    const ExprId before = builder_.fusion().exprs().endId();
    try {
      OpMaker maker(trial, choices_,
                    {sizes_, extents_, values_, options_.without, options_.gelu_products});
      if (!maker.make()) return;
      checkGuards(trial.fusion().guards, sizes_);
      if (!evaluateFrom(trial.fusion(), before)) {
        values_.resize(builder_.fusion().values().size());
        return;
      }
    } catch (const UserError&) {  // the operands do not fit
      values_.resize(builder_.fusion().values().size());
      return;
    }
    made_ += static_cast<int64_t>(trial.fusion().exprs().size() - before.index());
    builder_ = std::move(trial);
  }

  // Evaluates the new expressions, starting with `first`. Returns false if a new value is too
  // large, is not useful, or comes from a cast that GeneratorOptions::wild_casts forbids.
  bool evaluateFrom(const Fusion& fusion, ExprId first) {
    const ReferenceContext context{fusion, inputs_, sizes_};
    for (ExprId e : IdRange(first, fusion.exprs().endId())) {
      const Expression& expr = fusion.expr(e);
      const ValueId out = expr.outputs[0];
      int64_t elements = 1;
      for (int64_t size : context.sizesOf(out)) elements *= size;
      if (elements > options_.max_elements || fusion.tensor(out).rank() > 6) return false;
      std::vector<const Bounded*> operands;
      for (ValueId id : expr.inputs) operands.push_back(values_[id].get());
      if (!options_.wild_casts && isWildCast(fusion, expr, operands)) return false;
      keep(out, evaluateBounded(context, expr, operands));
      const bool leaf = expr.op->kind == OpKind::Constant || fusion.value(out).is_scalar;
      if (!leaf && !isUseful(*values_.back(), choices_)) return false;
    }
    return true;
  }

  // Chooses the outputs: up to eight values that no op uses, and sometimes one or two values that
  // ops use. If there are none, the first input is the output.
  void makeOutputs() {
    const Fusion& fusion = builder_.fusion();
    const IdVector<ValueId, std::vector<ExprId>> users = fusion.users();
    std::vector<ValueId> ends;
    std::vector<ValueId> others;
    for (ValueId id : users.ids()) {
      const Value& value = fusion.value(id);
      if (value.definition == kNoExpr || (value.is_scalar && !choices_.oneIn(6))) continue;
      (users[id].empty() ? ends : others).push_back(id);
    }
    choices_.shuffle(ends);
    if (ends.size() > 8) ends.resize(8);
    for (int64_t more = choices_.below(3); more > 0 && !others.empty(); --more) {
      ends.push_back(choices_.pick(others));
    }
    if (ends.empty()) ends.push_back(fusion.inputs().front());
    std::set<ValueId> seen;
    for (ValueId id : ends) {
      if (seen.insert(id).second) builder_.output(id);
    }
  }

  const GeneratorOptions options_;
  Choices choices_;
  FusionBuilder builder_;
  std::vector<Size> extents_;
  SizeBindings sizes_;
  ReferenceInputs inputs_;
  std::vector<InputLayout> layouts_;
  IdVector<ValueId, std::shared_ptr<const Bounded>> values_;
  int64_t made_ = 0;
};

}  // namespace

FusionCase randomCase(uint64_t seed, const GeneratorOptions& options) {
  return Generator(seed, options).make();
}

std::vector<InputLayout> denseLayouts(const FusionCase& fusion_case) {
  std::vector<InputLayout> layouts;
  for (ValueId id : fusion_case.fusion.inputs()) {
    layouts.emplace_back();
    auto found = fusion_case.inputs.tensors.find(id);
    if (found == fusion_case.inputs.tensors.end()) continue;
    const std::vector<int64_t>& sizes = found->second.sizes;
    layouts.back().strides = stridesFor(sizes, rowMajor(sizes.size()));
  }
  return layouts;
}

}  // namespace heddle::random
