// Pointwise ops of three operands.
#include "ir/op_rows.h"

namespace heddle::op_rows {
namespace {

const OpDef kTernaryRows[] = {
    {"where",
     K::Pointwise,
     3,
     R::Promote,
     "({0} ? {1} : {2})",
     [](D a) { return a[0] != 0 ? a[1] : a[2]; },
     [](I a) { return a[0] != 0 ? a[1] : a[2]; },
     {},
     std::nullopt,
     1},
};

}  // namespace

std::span<const OpDef> ternaryOps() { return kTernaryRows; }

}  // namespace heddle::op_rows
