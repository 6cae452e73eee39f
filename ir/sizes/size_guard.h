#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/base/size.h"

namespace heddle {

// A condition that every run checks: two sizes must be equal, or the first one must be at most the
// second one. `source` names the tensors or the op from which the sizes come.
struct SizeGuard {
  Size a;
  Size b;
  std::string source;    // "axis 0 of %x and axis 0 of %y, operands of add at line 7"
  bool at_most = false;  // true: a <= b; false: a == b
  bool operator==(const SizeGuard&) const = default;
};

// The origin of the value of each symbol: "axis 0 of %x", or "the scalar input %n".
using SizeSources = std::map<std::string, std::string>;

// Throws UserError if a guard does not hold, or if one of its sizes has no value. The message
// contains the source of the guard and the sizes. With `sources`, it also contains the values and
// origins of the symbols. The message omits a symbol if the source of the guard already names the
// tensor of this symbol. If a size of the guard contains the value of an input, the message omits
// no symbol.
void checkGuards(const std::vector<SizeGuard>& guards, const SizeBindings& sizes,
                 const SizeSources& sources = {});

}  // namespace heddle
