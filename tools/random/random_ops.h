#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph/builder.h"
#include "tools/random/bounds.h"
#include "tools/random/choices.h"

namespace heddle::random {

// The values, extents and settings that OpMaker uses for the ops of a random fusion.
struct OpContext {
  const SizeBindings& sizes;
  const std::vector<Size>& extents;  // for new axes
  const IdVector<ValueId, std::shared_ptr<const Bounded>>& values;
  const std::vector<OpKind>& without;  // GeneratorOptions::without
  bool gelu_products = true;           // true: matrix products may have the activation gelu
};

DType randomDType(Choices& choices);

// Adds one random op, with the helper ops that it needs, to a builder.
class OpMaker {
 public:
  OpMaker(FusionBuilder& builder, Choices& choices, const OpContext& context)
      : b_(builder), choices_(choices), context_(context) {}

  // Adds an op and returns true. If the random choices do not fit together, returns false or throws
  // UserError.
  bool make();
  // Returns whether make() can add this op.
  static bool knows(const OpDef& op);

 private:
  using Attrs = std::vector<std::pair<std::string, Attr>>;

  bool isLeftOut(OpKind kind) const;
  bool pointwise(const OpDef& op);
  bool composite();
  bool reduction(const OpDef& op);
  bool structural(const OpDef& op);
  bool indexed(const OpDef& op);
  bool diagonal();
  bool broadcast();
  bool expand();
  bool reshape();
  bool slice();
  bool matmul();
  bool linear();
  bool pad();
  bool takes(const OpDef& op);
  bool scatters(const OpDef& op);
  void shrink(std::vector<Size>& sizes, size_t whole_axis);

  bool randomAttrs(const OpDef& op, Attrs& attrs);
  ValueId tensor(bool with_axes = false);
  ValueId partner(ValueId x);  // a scalar, or a tensor that can be broadcast with x
  ValueId scalar();
  Scalar literal();
  ValueId indexFor(const std::vector<Size>& sizes, int64_t extent);
  int64_t axisOf(ValueId id);
  size_t rank(ValueId id) const { return b_.fusion().tensor(id).rank(); }
  int64_t number(const Size& size) const { return size.evaluate(lookupIn(context_.sizes)); }
  int64_t valueCount() const { return static_cast<int64_t>(b_.fusion().values().size()); }

  FusionBuilder& b_;
  Choices& choices_;
  OpContext context_;
};

}  // namespace heddle::random
