// Checks the views of a collective. The two sides of a collective are its inputs and its outputs on
// this rank. A part is the range of memory that one rank contributes or gets.
#include <algorithm>
#include <numeric>

#include "comm/operation.h"
#include "host/text/text_names.h"
#include "host/unroll/check_operands.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

using comm::CollectiveKind;

int64_t allocatedIn(const View& view) {
  const std::vector<int64_t>& alloc = view.desc.alloc;
  return std::accumulate(alloc.begin(), alloc.end(), int64_t{1}, std::multiplies<>());
}

bool viewsOverlap(const View& a, const View& b) {
  return a.buffer.valid() && a.buffer == b.buffer &&
         a.byte_offset < b.byte_offset + b.desc.allocBytes() &&
         b.byte_offset < a.byte_offset + a.desc.allocBytes();
}

// Checks one pair of buffers: an operand and its result.
class CollectiveChecker {
 public:
  CollectiveChecker(const Communicate& x, const UnrolledStep& step, size_t pair,
                    const TeamPosition& position)
      : x_(x),
        in_(step.inputs[pair]),
        out_(step.outputs[pair]),
        position_(position),
        elsewhere_(position.elsewhere[pair]) {}

  void run() const {
    const std::string_view kind = collectiveName(x_.kind);
    if (has(in_)) checkDense(in_, kind);
    if (has(out_)) checkDense(out_, kind);
    if (!has(in_) || !has(out_)) {
      parts();
      if (elsewhere_) counts();
      return;
    }
    HEDDLE_USER_CHECK(in_.desc.dtype == out_.desc.dtype, "{} of {} to {}: the dtypes must be equal",
                      kind, name(in_.desc.dtype), name(out_.desc.dtype));
    apart();
    if (x_.kind == CollectiveKind::AllToAllV) return;  // only the run knows its counts
    parts();
    counts();
    if (allocatedIn(in_) > 0) memoryOrder();
  }

 private:
  static bool has(const View& view) { return view.buffer.valid(); }
  bool isGathered() const {
    return x_.kind == CollectiveKind::Allgather || x_.kind == CollectiveKind::Gather;
  }
  bool isScattered() const {
    return x_.kind == CollectiveKind::ReduceScatter || x_.kind == CollectiveKind::Scatter;
  }

  void counts() const {
    const int64_t in = has(in_) ? allocatedIn(in_) : *elsewhere_;
    const int64_t out = has(out_) ? allocatedIn(out_) : *elsewhere_;
    const bool fits =
        in * (isGathered() ? position_.parts : 1) == out * (isScattered() ? position_.parts : 1);
    HEDDLE_USER_CHECK(
        fits,
        "{} in a team of {}: {} allocated elements of the operand do not fit {} of the result",
        collectiveName(x_.kind), position_.size, in, out);
  }

  // Checks that the larger side of a collective that gathers or scatters consists of equal parts,
  // one for each rank that has a part. In an all-to-all, the sides have equal sizes, and the
  // operand is checked. Does nothing for other collectives.
  void parts() const {
    const bool exchanges = x_.kind == CollectiveKind::AllToAll;
    const View& whole = isGathered() ? out_ : in_;
    if (!has(whole) || (!exchanges && !isGathered() && !isScattered())) return;
    HEDDLE_USER_CHECK(allocatedIn(whole) % position_.parts == 0,
                      "{} in a team of {}: {} allocated elements do not split into equal parts",
                      collectiveName(x_.kind), position_.size, allocatedIn(whole));
  }

  // Checks that the result does not overlap the operand, unless the part of this rank has the same
  // address on both sides. The result of an all-to-all must never overlap its operand.
  void apart() const {
    const int64_t in_end = in_.byte_offset + in_.desc.allocBytes();
    const int64_t out_end = out_.byte_offset + out_.desc.allocBytes();
    if (!viewsOverlap(in_, out_)) return;
    int64_t in_part = 0, out_part = 0;  // offset of this rank's part
    if (isGathered()) out_part = position_.rank * in_.desc.allocBytes();
    if (isScattered()) in_part = position_.rank * out_.desc.allocBytes();
    const bool exchanges =
        x_.kind == CollectiveKind::AllToAll || x_.kind == CollectiveKind::AllToAllV;
    HEDDLE_USER_CHECK(
        !exchanges && in_.byte_offset + in_part == out_.byte_offset + out_part,
        "{} reads bytes {} to {} and writes the overlapping bytes {} to {} of the buffer",
        collectiveName(x_.kind), in_.byte_offset, in_end, out_.byte_offset, out_end);
  }

  // Checks two properties. The axis along which the sizes of the two sides differ is outermost in
  // the memory of the larger side. All other axes have the same strides on both sides. Exceptions:
  // - An all-to-all has other rules (partsInOrder(), besideParts()).
  // - If the two sides have different numbers of axes, only an all-to-all is checked.
  // - In a team of one rank, only the strides are checked (sameOrder()).
  // - If the sides of any other collective, such as an allreduce, differ along an axis, nothing is
  //   checked.
  void memoryOrder() const {
    const TensorDesc& in = in_.desc;
    const TensorDesc& out = out_.desc;
    if (in.rank() != out.rank()) return besideParts();
    if (position_.size == 1) return sameOrder();
    if (x_.kind == CollectiveKind::AllToAll) return partsInOrder();
    for (size_t axis = 0; axis < in.rank(); ++axis) {
      if (in.alloc[axis] != out.alloc[axis]) {
        if (isGathered()) outermost(out, axis);
        if (isScattered()) outermost(in, axis);
        if (!isGathered() && !isScattered()) return;
      }
    }
    sameOrder();
  }

  // Checks an all-to-all whose result has an additional first axis, with one index per part. Each
  // part must have the same memory order in the operand and in the result. Does nothing for other
  // collectives and results.
  void besideParts() const {
    const TensorDesc& in = in_.desc;
    const TensorDesc& out = out_.desc;
    if (x_.kind != CollectiveKind::AllToAll || out.rank() != in.rank() + 1) return;
    if (out.alloc[0] != position_.size) return;
    for (size_t axis = 0; axis < in.rank(); ++axis) {
      HEDDLE_USER_CHECK(
          out.alloc[axis + 1] == 1 || in.strides[axis] == out.strides[axis + 1],
          "{}: a part has different memory orders on the two sides, {} with strides {} "
          "and {} with {}",
          collectiveName(x_.kind), str(in.alloc), str(in.strides), str(out.alloc),
          str(out.strides));
    }
  }

  // Checks that each axis with the same size on both sides has the same stride on both.
  void sameOrder() const {
    const TensorDesc& in = in_.desc;
    const TensorDesc& out = out_.desc;
    for (size_t axis = 0; axis < in.rank(); ++axis) {
      if (in.alloc[axis] != out.alloc[axis] || in.alloc[axis] == 1) continue;
      HEDDLE_USER_CHECK(in.strides[axis] == out.strides[axis],
                        "{}: the two sides have different memory orders, strides {} and {}",
                        collectiveName(x_.kind), str(in.strides), str(out.strides));
    }
  }

  // Checks that part r of an all-to-all is the r-th range of memory on both sides:
  //   The axis that is split is outermost in the operand.
  //   The axis that is joined is outermost in the result.
  //   A part has the same memory order on both sides.
  void partsInOrder() const {
    const TensorDesc& in = in_.desc;
    const TensorDesc& out = out_.desc;
    for (size_t axis = 0; axis < in.rank(); ++axis) {
      if (in.alloc[axis] == position_.size * out.alloc[axis]) outermost(in, axis);
      if (out.alloc[axis] == position_.size * in.alloc[axis]) outermost(out, axis);
    }
    for (size_t axis = 0; axis < in.rank(); ++axis) {
      const int64_t part = std::min(in.alloc[axis], out.alloc[axis]);
      HEDDLE_USER_CHECK(
          part == 1 || in.strides[axis] == out.strides[axis],
          "{}: a part has different memory orders on the two sides, strides {} and {}",
          collectiveName(x_.kind), str(in.strides), str(out.strides));
    }
  }

  void outermost(const TensorDesc& whole, size_t axis) const {
    for (size_t other = 0; other < whole.rank(); ++other) {
      HEDDLE_USER_CHECK(
          other == axis || whole.alloc[other] == 1 || whole.strides[other] < whole.strides[axis],
          "{} along axis {}, which is not outermost in memory: strides {}", collectiveName(x_.kind),
          axis, str(whole.strides));
    }
  }

  const Communicate& x_;
  const View& in_;
  const View& out_;
  const TeamPosition& position_;
  const std::optional<int64_t> elsewhere_;
};

}  // namespace

void checkCollective(const Communicate& x, const UnrolledStep& step, const TeamPosition& position) {
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    CollectiveChecker(x, step, i, position).run();
    for (size_t j = 0; j < step.outputs.size(); ++j) {
      const bool apart = i == j || (!viewsOverlap(step.outputs[i], step.outputs[j]) &&
                                    !viewsOverlap(step.outputs[i], step.inputs[j]));
      HEDDLE_USER_CHECK(apart, "{}: pair {} of the group writes to memory of pair {}",
                        collectiveName(x.kind), i, j);
    }
  }
}

}  // namespace heddle::host
