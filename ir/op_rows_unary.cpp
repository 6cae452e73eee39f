// Pointwise ops of one operand.
#include "ir/op_rows.h"

namespace heddle::op_rows {
namespace {

constexpr AttrSpec kDType[] = {{"dtype", AttrType::DType}};

const OpDef kUnaryRows[] = {
    {"cast", K::Pointwise, 1, R::Attribute, "{0}", [](D a) { return a[0]; },
     [](I a) { return a[0]; }, kDType},
    {"neg", K::Pointwise, 1, R::Promote, "(-{0})", [](D a) { return -a[0]; },
     [](I a) { return wrap(0 - u(a[0])); }},
    {"abs", K::Pointwise, 1, R::Promote, "hd::abs({0})", [](D a) { return std::fabs(a[0]); },
     [](I a) { return a[0] < 0 ? wrap(0 - u(a[0])) : a[0]; }},
    {"exp", K::Pointwise, 1, R::PromoteFloat, "hd::exp({0})", [](D a) { return std::exp(a[0]); }},
    {"log", K::Pointwise, 1, R::PromoteFloat, "hd::log({0})", [](D a) { return std::log(a[0]); }},
    {"sqrt", K::Pointwise, 1, R::PromoteFloat, "hd::sqrt({0})",
     [](D a) { return std::sqrt(a[0]); }},
    {"rsqrt", K::Pointwise, 1, R::PromoteFloat, "hd::rsqrt({0})",
     [](D a) { return 1.0 / std::sqrt(a[0]); }},
    {"reciprocal", K::Pointwise, 1, R::PromoteFloat, "(1 / {0})", [](D a) { return 1.0 / a[0]; }},
    {"tanh", K::Pointwise, 1, R::PromoteFloat, "hd::tanh({0})",
     [](D a) { return std::tanh(a[0]); }},
    {"erf", K::Pointwise, 1, R::PromoteFloat, "hd::erf({0})", [](D a) { return std::erf(a[0]); }},
    {"sin", K::Pointwise, 1, R::PromoteFloat, "hd::sin({0})", [](D a) { return std::sin(a[0]); }},
    {"cos", K::Pointwise, 1, R::PromoteFloat, "hd::cos({0})", [](D a) { return std::cos(a[0]); }},
    {"sigmoid", K::Pointwise, 1, R::PromoteFloat, "(1 / (1 + hd::exp(-{0})))",
     [](D a) { return 1.0 / (1.0 + std::exp(-a[0])); }},
    {"silu", K::Pointwise, 1, R::PromoteFloat, "({0} / (1 + hd::exp(-{0})))",
     [](D a) { return a[0] / (1.0 + std::exp(-a[0])); }},
    {"relu", K::Pointwise, 1, R::Promote, "hd::relu({0})",
     [](D a) { return a[0] < 0 ? 0.0 : a[0]; }, [](I a) { return a[0] < 0 ? 0 : a[0]; }},
    {"isnan", K::Pointwise, 1, R::Bool, "({0} != {0})",
     [](D a) { return std::isnan(a[0]) ? 1.0 : 0.0; }, [](I) { return int64_t{0}; }},
    {"logical_not", K::Pointwise, 1, R::Bool, "({0} == 0)",
     [](D a) { return a[0] == 0 ? 1.0 : 0.0; }, [](I a) { return int64_t{a[0] == 0}; }},
};

}  // namespace

std::span<const OpDef> unaryOps() { return kUnaryRows; }

}  // namespace heddle::op_rows
