#include "tools/random/reduce.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "tools/random/rebuild.h"

namespace heddle::random {
namespace {

class Reducer {
 public:
  Reducer(FusionCase failing, const StillFails& still_fails, int limit)
      : best_(std::move(failing)), still_fails_(still_fails), left_(limit) {}

  FusionCase run() {
    for (int64_t before = -1; before != weight() && left_ > 0;) {
      before = weight();
      dropOutputs();
      cutHalves();
      cutValues();
      while (bypass()) {
      }
      shrink();
    }
    simplify();
    return best_;
  }

 private:
  using Make = std::function<FusionCase()>;

  bool attempt(const Make& make) {
    if (left_-- <= 0) return false;
    try {
      FusionCase candidate = make();
      if (!still_fails_(candidate)) return false;
      best_ = std::move(candidate);
      return true;
    } catch (const std::exception&) {
      return false;  // the fusion is not valid or cannot be checked
    }
  }
  bool attempt(const Edits& edits) {
    return attempt([&] { return rebuild(best_, edits); });
  }

  // Returns the size of the case: the number of its values, plus the number of its outputs, plus
  // the sum of the values of its size symbols.
  int64_t weight() const {
    int64_t sum =
        static_cast<int64_t>(best_.fusion.values().size() + best_.fusion.outputs().size());
    for (const auto& [symbol, size] : best_.sizes) sum += size;
    return sum;
  }

  // Searches for a value such that the case still fails if this value is the only output. If there
  // is no such value, drops each output without which the case still fails.
  void dropOutputs() {
    const IdVector<ExprId, Expression> exprs = best_.fusion.exprs();
    for (const Expression& expr : exprs) {
      const bool only = best_.fusion.outputs() == expr.outputs;
      if (!only && attempt(Edits{{expr.outputs[0]}, {}})) return;
    }
    attempt(Edits{});  // drops values that no output needs
    for (size_t i = 0; best_.fusion.outputs().size() > 1 && i < best_.fusion.outputs().size();) {
      std::vector<ValueId> fewer = best_.fusion.outputs();
      fewer.erase(fewer.begin() + static_cast<int64_t>(i));
      if (!attempt(Edits{fewer, {}})) ++i;
    }
  }

  // Returns the values that could become inputs: neither constants nor outputs.
  std::vector<ValueId> computed() const {
    std::vector<ValueId> ids;
    for (const Expression& expr : best_.fusion.exprs()) {
      const ValueId id = expr.outputs[0];
      const auto& outputs = best_.fusion.outputs();
      const bool is_output = std::find(outputs.begin(), outputs.end(), id) != outputs.end();
      if (!is_output && expr.op->kind != OpKind::Constant) ids.push_back(id);
    }
    return ids;
  }

  // Turns many computed values into inputs in one step: half of them, then up to 3/4 of the
  // computed values that remain, then up to 7/8 of those that remain after that. A long fusion thus
  // becomes short after a few tries.
  void cutHalves() {
    for (size_t parts = 2; parts <= 8; parts *= 2) {
      const std::vector<ValueId> ids = computed();
      for (size_t k = parts - 1; k > 0; --k) {
        Edits edits;
        const size_t end = ids.size() * k / parts;
        for (size_t i = 0; i < end; ++i) edits.replaced[ids[i]] = std::nullopt;
        if (end > 0 && attempt(edits)) break;
      }
    }
  }

  void cutValues() {
    for (size_t i = computed().size(); i-- > 0;) {
      const std::vector<ValueId> ids = computed();
      if (i >= ids.size()) continue;
      attempt(Edits{{}, {{ids[i], std::nullopt}}});
    }
  }

  // Replaces a value by an operand of its expression that has the same type and sizes.
  bool bypass() {
    for (const Expression& expr : best_.fusion.exprs()) {
      const ValueId out = expr.outputs[0];
      const Value& value = best_.fusion.value(out);
      for (ValueId id : expr.inputs) {
        const Value& operand = best_.fusion.value(id);
        const bool same = operand.is_scalar == value.is_scalar &&
                          operand.tensor.dtype == value.tensor.dtype &&
                          operand.tensor.sizes() == value.tensor.sizes();
        if (same && attempt(Edits{{}, {{out, id}}})) return true;
      }
    }
    return false;
  }

  void shrink() {
    const SizeBindings sizes = best_.sizes;
    for (const auto& [symbol, size] : sizes) {
      for (const int64_t smaller : {int64_t{1}, int64_t{2}, size / 2, size - 1}) {
        if (smaller < 1 || smaller >= best_.sizes.at(symbol)) continue;
        SizeBindings now = best_.sizes;
        now[symbol] = smaller;
        if (attempt([&] { return resized(best_, now); })) break;
      }
    }
  }

  void simplify() {
    attempt([&] {
      FusionCase dense = best_;
      dense.layouts = denseLayouts(best_);
      return dense;
    });
    for (size_t i = 0; i < best_.layouts.size(); ++i) {
      attempt([&] {
        FusionCase dense = best_;
        dense.layouts[i] = denseLayouts(best_)[i];
        return dense;
      });
    }
    for (double (*simpler)(double) :
         {+[](double) { return 1.0; }, +[](double v) { return std::isfinite(v) ? v : 1.0; },
          +[](double v) { return std::nearbyint(v); }}) {
      const std::vector<ValueId> inputs =
          best_.fusion.inputs();  // a copy, because an attempt replaces best_
      for (ValueId id : inputs) {
        if (best_.inputs.tensors.contains(id)) {
          attempt([&] { return mapped(id, simpler); });
        }
      }
    }
  }

  FusionCase mapped(ValueId id, double (*simpler)(double)) const {
    FusionCase result = best_;
    const HostTensor& old = best_.inputs.tensors.at(id);
    HostTensor now(old.dtype, old.sizes);
    for (int64_t i = 0; i < now.numel(); ++i) now.set(i, simpler(toDouble(old.at(i))));
    result.inputs.tensors[id] = std::move(now);
    return result;
  }

  FusionCase best_;
  const StillFails& still_fails_;
  int left_;
};

}  // namespace

FusionCase reduce(FusionCase failing, const StillFails& still_fails, int limit) {
  return Reducer(std::move(failing), still_fails, limit).run();
}

}  // namespace heddle::random
