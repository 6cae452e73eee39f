// Pointwise ops of two operands.
#include "ir/op_rows.h"

namespace heddle::op_rows {
namespace {

int64_t intPow(const int64_t* a) {
  if (a[1] < 0) return a[0] == 1 ? 1 : a[0] == -1 ? (a[1] % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1;
  uint64_t base = u(a[0]);
  for (int64_t e = a[1]; e > 0; e >>= 1, base *= base) {
    if (e & 1) result *= base;
  }
  return wrap(result);
}

const OpDef kBinaryRows[] = {
    {"add", K::Pointwise, 2, R::Promote, "({0} + {1})", [](D a) { return a[0] + a[1]; },
     [](I a) { return wrap(u(a[0]) + u(a[1])); }},
    {"sub", K::Pointwise, 2, R::Promote, "({0} - {1})", [](D a) { return a[0] - a[1]; },
     [](I a) { return wrap(u(a[0]) - u(a[1])); }},
    {"mul", K::Pointwise, 2, R::Promote, "({0} * {1})", [](D a) { return a[0] * a[1]; },
     [](I a) { return wrap(u(a[0]) * u(a[1])); }},
    {"div", K::Pointwise, 2, R::PromoteFloat, "({0} / {1})", [](D a) { return a[0] / a[1]; }},
    {"pow", K::Pointwise, 2, R::Promote, "hd::pow({0}, {1})",
     [](D a) { return std::pow(a[0], a[1]); }, intPow},
    {"maximum", K::Pointwise, 2, R::Promote, "hd::maximum({0}, {1})", maxNan,
     [](I a) { return std::max(a[0], a[1]); }},
    {"minimum", K::Pointwise, 2, R::Promote, "hd::minimum({0}, {1})", minNan,
     [](I a) { return std::min(a[0], a[1]); }},
    {"eq", K::Pointwise, 2, R::Bool, "({0} == {1})", [](D a) { return double(a[0] == a[1]); },
     [](I a) { return int64_t{a[0] == a[1]}; }},
    {"ne", K::Pointwise, 2, R::Bool, "({0} != {1})", [](D a) { return double(a[0] != a[1]); },
     [](I a) { return int64_t{a[0] != a[1]}; }},
    {"lt", K::Pointwise, 2, R::Bool, "({0} < {1})", [](D a) { return double(a[0] < a[1]); },
     [](I a) { return int64_t{a[0] < a[1]}; }},
    {"le", K::Pointwise, 2, R::Bool, "({0} <= {1})", [](D a) { return double(a[0] <= a[1]); },
     [](I a) { return int64_t{a[0] <= a[1]}; }},
    {"gt", K::Pointwise, 2, R::Bool, "({0} > {1})", [](D a) { return double(a[0] > a[1]); },
     [](I a) { return int64_t{a[0] > a[1]}; }},
    {"ge", K::Pointwise, 2, R::Bool, "({0} >= {1})", [](D a) { return double(a[0] >= a[1]); },
     [](I a) { return int64_t{a[0] >= a[1]}; }},
    {"logical_and", K::Pointwise, 2, R::Bool, "({0} != 0 && {1} != 0)",
     [](D a) { return double(a[0] != 0 && a[1] != 0); },
     [](I a) { return int64_t{a[0] != 0 && a[1] != 0}; }},
    {"logical_or", K::Pointwise, 2, R::Bool, "({0} != 0 || {1} != 0)",
     [](D a) { return double(a[0] != 0 || a[1] != 0); },
     [](I a) { return int64_t{a[0] != 0 || a[1] != 0}; }},
};

}  // namespace

std::span<const OpDef> binaryOps() { return kBinaryRows; }

}  // namespace heddle::op_rows
