// Reductions. In the kernel text, {0} is the accumulator. {1} is the next element, or the
// accumulator of another thread.
#include "ir/ops/rows.h"

namespace heddle::op_rows {
namespace {

constexpr AttrSpec kReduce[] = {{"axes", AttrType::Ints, false},
                                {"keepdim", AttrType::Bool, false}};

constexpr OpDef kReductionRows[] = {
    noted("Integers and bools give i64",
          {"sum", K::Reduction, 1, R::Promote, "({0} + {1})", [](D a) { return a[0] + a[1]; },
           [](I a) { return wrap(u(a[0]) + u(a[1])); }, kReduce, ReduceOp::Sum}),
    noted("Integers and bools give i64",
          {"prod", K::Reduction, 1, R::Promote, "({0} * {1})", [](D a) { return a[0] * a[1]; },
           [](I a) { return wrap(u(a[0]) * u(a[1])); }, kReduce, ReduceOp::Prod}),
    noted("PyTorch's amax: NaN if an element is NaN. Without elements it gives -inf or the lowest "
          "integer; PyTorch raises an error",
          {"max", K::Reduction, 1, R::Promote, "hd::maximum({0}, {1})", maxNan,
           [](I a) { return std::max(a[0], a[1]); }, kReduce, ReduceOp::Max}),
    noted("PyTorch's amin: NaN if an element is NaN. Without elements it gives inf or the highest "
          "integer; PyTorch raises an error",
          {"min", K::Reduction, 1, R::Promote, "hd::minimum({0}, {1})", minNan,
           [](I a) { return std::min(a[0], a[1]); }, kReduce, ReduceOp::Min}),
};

}  // namespace

std::span<const OpDef> reductionOps() { return kReductionRows; }

}  // namespace heddle::op_rows
