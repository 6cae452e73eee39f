// FusionBuilder: sizes that may be 1 in a run.
#include <fmt/format.h>

#include <algorithm>

#include "ir/base/check.h"
#include "ir/base/size_symbols.h"
#include "ir/graph/builder.h"
#include "ir/graph/declared_sizes.h"

namespace heddle {

void FusionBuilder::symbolicSize(const std::string& symbol) {
  HEDDLE_USER_CHECK(fusion_.exprs().empty(),
                    "size {}? must be declared before the first op of fusion {}", symbol,
                    fusion_.name);
  if (!fusion_.symbolic_sizes.add(symbol)) return;
  for (ValueId id : inputs_of_symbol_[symbol]) markSymbolicAxes(fusion_.mutableValue(id));
}

const std::string* FusionBuilder::symbolOf(const Size& extent) {
  const Size& size = extent.kind() == Size::Kind::Given ? extent.lhs() : extent;
  return size.kind() == Size::Kind::Symbol ? &size.symbolName() : nullptr;
}

bool FusionBuilder::isSymbolic(const Size& extent) const {
  const std::string* symbol = symbolOf(extent);
  return symbol != nullptr && fusion_.symbolic_sizes.contains(*symbol);
}

void FusionBuilder::markSymbolicAxes(Value& value) const {
  for (size_t i = 0; i < value.tensor.rank() && !fusion_.symbolic_sizes.empty(); ++i) {
    IterDomain& axis = value.tensor.domain[i];
    if (axis.kind != IterKind::Iteration || !isSymbolic(axis.extent)) continue;
    HEDDLE_USER_CHECK(!value.tensor.sharding || !value.tensor.sharding->isSharded(i),
                      "axis {} of %{} is sharded and has the size {}?, which may be 1: shard "
                      "another axis, or remove the '?'",
                      i, value.name, axis.extent.str());
    axis.kind = IterKind::Symbolic;
  }
}

// Returns max * min(1, min) of the extents. In a run, each extent is 1 or a common extent n, which
// may be 0. The result is n if any extent is n, otherwise 1.
IterDomain FusionBuilder::symbolicAxis(const std::vector<Size>& extents) {
  Size result = extents[0];
  for (const Size& extent : extents) {
    if (extent == result) continue;
    result = Size::max(result, extent) * Size::min(Size(1), Size::min(result, extent));
  }
  return {std::move(result), IterKind::Symbolic};
}

SharedDeclaredSizes declaredSizesOf(const Fusion& fusion) {
  DeclaredSizes declared;
  declared.symbolic.insert(fusion.symbolic_sizes.begin(), fusion.symbolic_sizes.end());
  for (ValueId id : fusion.inputs()) {
    const Value& input = fusion.value(id);
    const auto& domain = input.tensor.domain;
    if (std::any_of(domain.begin(), domain.end(),
                    [](const IterDomain& axis) { return axis.kind == IterKind::Symbolic; })) {
      declared.inputs[input.name] = typeText(input, nullptr);
    }
  }
  return std::make_shared<const DeclaredSizes>(std::move(declared));
}

std::string typeText(const Value& value, const DeclaredSizes* declared) {
  if (declared != nullptr && value.definition == kNoExpr) {
    const auto found = declared->inputs.find(value.name);
    if (found != declared->inputs.end()) return found->second;
  }
  std::string text = fmt::format("%{}: {}", value.name, heddle::name(value.tensor.dtype));
  if (value.is_scalar) return text;
  text += '[';
  for (size_t i = 0; i < value.tensor.rank(); ++i) {
    const IterDomain& axis = value.tensor.domain[i];
    text += (i > 0 ? ", " : "") + writtenSize(axis.extent);
    if (axis.extent.kind() != Size::Kind::Symbol) continue;
    const bool is_declared =
        declared != nullptr && declared->symbolic.contains(axis.extent.symbolName());
    if (axis.kind == IterKind::Symbolic || is_declared) text += '?';
  }
  return text + ']';
}

}  // namespace heddle
