#pragma once

#include <functional>
#include <set>
#include <string>

#include "ir/graph/fusion.h"

namespace heddle {

// Functions for integer inputs whose values decide sizes. In a size, the input %n is the symbol
// `%n` (ir/base/size.h).

// Calls `visit` for each size of the fusion: extents, attributes, guards and Value::equals.
void forEachSize(const Fusion& fusion, const std::function<void(const Size&)>& visit);

// Returns whether the size is the value of a scalar, as in `%n`. Returns false for an expression
// like `%n + 1`.
bool isScalarValue(const Size& size);

// Adds to `symbols` the symbols in `size` that stand for inputs.
void addScalarSymbols(const Size& size, std::set<std::string>& symbols);

// Returns all symbols in sizes of the fusion that stand for inputs.
std::set<std::string> scalarSymbols(const Fusion& fusion);

// Replaces symbols in the extents, attributes and guards of the fusion. `replace` returns the new
// size of a symbol, or nullopt to keep the symbol. Sizes without symbols of inputs do not change.
void substituteScalars(Fusion& fusion,
                       const std::function<std::optional<Size>(const std::string&)>& replace);

// Returns whether an input may decide sizes: it has an integer type and no axes.
bool mayDecideSizes(const TensorView& tensor);

// Returns the default sizes of the fusion (Fusion::size_defaults), and the defaults of the scalars
// that decide sizes.
SizeBindings defaultSizes(const Fusion& fusion);

}  // namespace heddle
