#include "host/unroll/view.h"

#include <algorithm>

#include "host/program/visit.h"
#include "ir/base/check.h"

namespace heddle::host {

int64_t elements(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}

std::optional<size_t> repeatedAxis(const TensorDesc& desc) {
  for (size_t axis = 0; desc.numel() > 0 && axis < desc.rank(); ++axis) {
    if (desc.alloc[axis] > 1 && desc.strides[axis] == 0) return axis;
  }
  return std::nullopt;
}

namespace {

// A group of adjacent axes in a reshape: the axes [from, from_end) of the operand become the axes
// [to, to_end) of the result.
struct Run {
  size_t from, from_end, to, to_end;
};

// Splits the axes of both tensors into groups (Run). The allocated sizes of a group have equal
// products on both sides, and no group can be split further. Returns nullopt if there are no such
// groups.
std::optional<std::vector<Run>> cutRuns(const TensorDesc& from, const TensorDesc& to) {
  std::vector<Run> runs;
  size_t i = 0, j = 0;
  while (i < from.rank() || j < to.rank()) {
    Run run{i, i, j, j};
    int64_t left = 1, right = 1;
    do {
      if (left <= right && i < from.rank()) {
        left *= from.alloc[i++];
      } else if (j < to.rank()) {
        right *= to.alloc[j++];
      } else if (i < from.rank()) {
        left *= from.alloc[i++];
      } else {
        return std::nullopt;
      }
    } while (left != right);
    run.from_end = i;
    run.to_end = j;
    runs.push_back(run);
  }
  return runs;
}

// Returns the stride in `from` of the innermost axis of a group. Returns nullopt if the axes of the
// group are not dense in row-major order. Ignores axes of one element.
std::optional<int64_t> innermostStride(const TensorDesc& from, const Run& run) {
  std::optional<int64_t> expected, innermost;
  for (size_t i = run.from_end; i-- > run.from;) {
    if (from.alloc[i] == 1) continue;
    if (expected && from.strides[i] != *expected) return std::nullopt;
    if (!innermost) innermost = from.strides[i];
    expected = from.strides[i] * from.alloc[i];
  }
  return innermost.value_or(1);
}

// Returns whether no axis of [begin, end) except the outermost one has padding. Ignores leading
// axes of one element.
bool paddedOnlyOutside(const TensorDesc& desc, size_t begin, size_t end) {
  while (begin < end && desc.alloc[begin] == 1) ++begin;
  for (size_t i = begin + 1; i < end; ++i) {
    if (desc.sizes[i] != desc.alloc[i]) return false;
  }
  return true;
}

class ViewMaker {
 public:
  ViewMaker(const Slot& out, const Slot& in_slot, const View& in, const Scope& scope)
      : out_(out), in_slot_(in_slot), in_(in), scope_(scope), want_(scope.describe(out)) {
    HEDDLE_USER_CHECK(out.tensor.dtype == in_slot.tensor.dtype, "%{} is {} and views %{} of {}",
                      out.name, name(out.tensor.dtype), in_slot.name, name(in_slot.tensor.dtype));
  }

  View operator()(const Alias::Same&) const { return viewAt(in_.desc, 0); }

  View operator()(const Alias::Reshape&) const {
    TensorDesc desc = want_;
    // The operand may be the result of a gather of uneven blocks, which has padding at its end. The
    // reshape ignores this padding: it uses the allocated sizes that follow from the sharding
    // alone.
    TensorDesc from = in_.desc;
    Slot unpadded = in_slot_;
    unpadded.alloc.clear();
    const std::vector<int64_t> alloc = scope_.describe(unpadded).alloc;
    for (size_t i = 0; i < from.rank(); ++i) from.alloc[i] = std::min(from.alloc[i], alloc[i]);
    const auto strides = regroup(from, desc);
    HEDDLE_USER_CHECK(
        strides.has_value(),
        "%{} of {} cannot be viewed as %{} of {}: it is allocated as {} with strides {}",
        in_slot_.name, str(in_.desc.sizes), out_.name, str(want_.sizes), str(in_.desc.alloc),
        str(in_.desc.strides));
    desc.strides = *strides;
    return viewAt(desc, 0);
  }

  View operator()(const Alias::Permute& x) const {
    const std::vector<int64_t>& axes = x.axes;
    std::vector<int64_t> sorted = axes;
    std::sort(sorted.begin(), sorted.end());
    HEDDLE_USER_CHECK(sorted == rowMajor(in_.desc.rank()),
                      "{} is not a permutation of the axes of %{}", str(axes), in_slot_.name);
    TensorDesc desc = in_.desc;
    for (size_t i = 0; i < axes.size(); ++i) {
      const size_t from = axes[i];
      desc.sizes[i] = in_.desc.sizes[from];
      desc.alloc[i] = in_.desc.alloc[from];
      desc.strides[i] = in_.desc.strides[from];
    }
    return viewAt(desc, 0);
  }

  View operator()(const Alias::Slice& x) const {
    HEDDLE_USER_CHECK(x.starts.size() == in_.desc.rank() && x.stops.size() == in_.desc.rank(),
                      "a slice of %{} needs {} starts and stops", in_slot_.name, in_.desc.rank());
    HEDDLE_USER_CHECK(x.steps.empty() || x.steps.size() == in_.desc.rank(),
                      "a slice of %{} needs {} steps or none", in_slot_.name, in_.desc.rank());
    TensorDesc desc = in_.desc;
    int64_t begin = 0;
    std::vector<View::LateTerm> late = in_.late;
    for (size_t i = 0; i < desc.rank(); ++i) {
      const int64_t start = scope_.evaluate(x.starts[i]), stop = scope_.evaluate(x.stops[i]);
      addLate(x.starts[i], x.stops[i], i, late);
      // If a slice contains a complete sharded axis, the result contains this rank's complete
      // block.
      const int64_t step = x.steps.empty() ? 1 : x.steps[i];
      if (start == 0 && stop == desc.global[i] && step == 1) continue;
      HEDDLE_USER_CHECK(desc.global[i] == desc.sizes[i], "axis {} of %{} is sharded and sliced", i,
                        in_slot_.name);
      HEDDLE_USER_CHECK(0 <= start && start <= stop && stop <= desc.sizes[i],
                        "slice {} .. {} of axis {} of %{}, which has the size {}", start, stop, i,
                        in_slot_.name, desc.sizes[i]);
      HEDDLE_USER_CHECK(step > 0, "axis {} of a slice of %{} has the step {}", i, in_slot_.name,
                        step);
      // Rounds up, because the last step may be shorter. (stop - start + step - 1) could overflow.
      const int64_t count = (stop - start) / step + ((stop - start) % step != 0 ? 1 : 0);
      if (count > 0) begin += start * desc.strides[i];
      if (count > 1) desc.strides[i] *= step;
      desc.sizes[i] = desc.alloc[i] = count;
    }
    View view = viewAt(desc, begin);
    view.byte_offset -= lateBytes(late) - lateBytes(in_.late);
    view.late = std::move(late);
    return view;
  }

  View operator()(const Alias::Index& x) const {
    HEDDLE_USER_CHECK(in_.desc.rank() > 0, "%{} has no axis to index", in_slot_.name);
    const int64_t index = scope_.evaluate(x.index);
    HEDDLE_USER_CHECK(index >= 0 && index < in_.desc.sizes[0],
                      "index {} = {} of %{}, whose axis 0 has the size {}", x.index.str(), index,
                      in_slot_.name, in_.desc.sizes[0]);
    TensorDesc desc = in_.desc;
    for (auto* list : {&desc.sizes, &desc.alloc, &desc.strides}) list->erase(list->begin());
    return viewAt(desc, index * in_.desc.strides[0]);
  }

  View operator()(const Alias::Shard&) const {
    HEDDLE_USER_CHECK(want_.global == in_.desc.global, "%{} of {} is not a shard of %{} of {}",
                      out_.name, str(want_.global), in_slot_.name, str(in_.desc.global));
    TensorDesc desc = in_.desc;
    int64_t begin = 0;
    for (size_t i = 0; i < desc.rank(); ++i) {
      const int64_t from = want_.offset[i] - in_.desc.offset[i];
      HEDDLE_USER_CHECK(
          want_.sizes[i] == 0 || (from >= 0 && from + want_.sizes[i] <= in_.desc.sizes[i]),
          "the block of %{} on rank {} is not within the block of %{} (axis {})", out_.name,
          scope_.rank(), in_slot_.name, i);
      if (from == 0 && want_.sizes[i] == in_.desc.sizes[i]) continue;
      if (want_.sizes[i] > 0) begin += from * desc.strides[i];
      desc.sizes[i] = desc.alloc[i] = want_.sizes[i];
    }
    return viewAt(desc, begin);
  }

  View operator()(const Alias::Unpad&) const {
    TensorDesc desc = in_.desc;
    HEDDLE_USER_CHECK(desc.rank() == want_.rank(), "%{} has rank {} and views %{} of rank {}",
                      out_.name, want_.rank(), in_slot_.name, desc.rank());
    for (size_t i = 0; i < desc.rank(); ++i) {
      HEDDLE_USER_CHECK(want_.sizes[i] <= desc.alloc[i],
                        "%{} of {} is larger than the allocation {} of %{}", out_.name,
                        str(want_.sizes), str(desc.alloc), in_slot_.name);
      desc.sizes[i] = want_.sizes[i];
      desc.alloc[i] = std::min(desc.alloc[i], want_.alloc[i]);
    }
    return viewAt(desc, 0);
  }

  View operator()(const Alias::Expand& x) const {
    checkAxes(x.axes, want_.rank(), out_.name);
    HEDDLE_USER_CHECK(want_.rank() == in_.desc.rank() + x.axes.size(),
                      "%{} of rank {} is not %{} of rank {} with {} more axes", out_.name,
                      want_.rank(), in_slot_.name, in_.desc.rank(), x.axes.size());
    TensorDesc desc = want_;
    for (size_t i = 0, from = 0; i < want_.rank(); ++i) {
      const bool is_new = std::binary_search(x.axes.begin(), x.axes.end(), static_cast<int64_t>(i));
      // If the result shards an axis of one element, this rank may hold no element of the axis.
      const bool repeats = is_new || (in_.desc.sizes[from] == 1 && in_.desc.global[from] == 1 &&
                                      (want_.global[i] != 1 || want_.sizes[i] != 1));
      desc.sizes[i] = desc.alloc[i] = want_.sizes[i];
      desc.strides[i] = 0;
      if (!repeats) {
        desc.sizes[i] = in_.desc.sizes[from];
        desc.alloc[i] = in_.desc.alloc[from];
        desc.strides[i] = in_.desc.strides[from];
      }
      if (!is_new) ++from;
    }
    return viewAt(desc, 0);
  }

  View operator()(const Alias::Diagonal& x) const {
    std::vector<int64_t> axes{x.first, x.second};
    std::sort(axes.begin(), axes.end());
    checkAxes(axes, in_.desc.rank(), in_slot_.name);
    TensorDesc desc = in_.desc;
    const auto a = static_cast<size_t>(axes[0]), b = static_cast<size_t>(axes[1]);
    for (size_t axis : {a, b}) {
      HEDDLE_USER_CHECK(desc.global[axis] == desc.sizes[axis],
                        "axis {} of %{} is sharded, and a diagonal is taken along it", axis,
                        in_slot_.name);
    }
    const int64_t size = std::min(desc.sizes[a], desc.sizes[b]);
    const int64_t stride = desc.strides[a] + desc.strides[b];
    for (auto* list : {&desc.sizes, &desc.alloc, &desc.strides}) {
      list->erase(list->begin() + axes[1]);
      list->erase(list->begin() + axes[0]);
    }
    desc.sizes.push_back(size);
    desc.alloc.push_back(size);
    desc.strides.push_back(stride);
    return viewAt(desc, 0);
  }

 private:
  // Checks that `axes` are different axes of %name in ascending order. %name has `rank` axes.
  static void checkAxes(const std::vector<int64_t>& axes, size_t rank, const std::string& name) {
    const bool ascends =
        std::adjacent_find(axes.begin(), axes.end(), std::greater_equal<>()) == axes.end();
    HEDDLE_USER_CHECK(ascends && (axes.empty() ||
                                  (axes.front() >= 0 && axes.back() < static_cast<int64_t>(rank))),
                      "{} are not different axes of %{}, which has {} axes", str(axes), name, rank);
  }

  // Adds the terms of the start of a slice along axis i to `late`. Restricts the late inputs to
  // values for which the slice is within the unsharded axis. The caller must subtract from
  // View::byte_offset what the terms add with the present values of these inputs.
  void addLate(const Size& start, const Size& stop, size_t i,
               std::vector<View::LateTerm>& late) const {
    std::vector<View::LateTerm> terms = scope_.lateTermsOf(start);
    if (terms.empty()) return;
    scope_.restrictLate(start);
    scope_.restrictLate(Size(in_.desc.global[i]) - stop);
    for (View::LateTerm& term : terms) {
      term.bytes *= in_.desc.strides[i] * heddle::sizeOf(in_.desc.dtype);
      late.push_back(term);
    }
  }

  // Returns the bytes that the terms add with the present values of the late inputs.
  int64_t lateBytes(const std::vector<View::LateTerm>& late) const {
    int64_t bytes = 0;
    for (const View::LateTerm& term : late) bytes += term.bytes * scope_.lateValue(term.input);
    return bytes;
  }

  // Returns the view with the descriptor `desc`. In memory, it begins `begin` elements after the
  // beginning of the operand. Throws UserError if the sizes of `desc` are not those that the type
  // of the result states.
  View viewAt(TensorDesc desc, int64_t begin) const {
    HEDDLE_USER_CHECK(desc.sizes == want_.sizes, "%{} has the sizes {}, the view of %{} has {}",
                      out_.name, str(want_.sizes), in_slot_.name, str(desc.sizes));
    desc.global = want_.global;
    desc.offset = want_.offset;
    return {in_.buffer, in_.byte_offset + begin * heddle::sizeOf(desc.dtype), std::move(desc),
            in_.late, in_.value};
  }

  const Slot& out_;
  const Slot& in_slot_;
  const View& in_;
  const Scope& scope_;
  TensorDesc want_;
};

}  // namespace

// Computes the strides for each group of axes separately. A group must be dense, and all its
// padding must be at its end, in both tensors.
std::optional<std::vector<int64_t>> regroup(const TensorDesc& from, const TensorDesc& to) {
  if (elements(from.alloc) != elements(to.alloc)) return std::nullopt;
  if (from.numel() != to.numel()) return std::nullopt;
  if (elements(from.alloc) == 0) return to.strides;
  const auto runs = cutRuns(from, to);
  if (!runs) return std::nullopt;
  std::vector<int64_t> strides(to.rank(), 1);
  for (const Run& run : *runs) {
    const auto innermost = innermostStride(from, run);
    if (!innermost) return std::nullopt;
    if (!paddedOnlyOutside(from, run.from, run.from_end)) return std::nullopt;
    if (!paddedOnlyOutside(to, run.to, run.to_end)) return std::nullopt;
    int64_t valid = 1, stride = *innermost;
    for (size_t i = run.from; i < run.from_end; ++i) valid *= from.sizes[i];
    for (size_t j = run.to_end; j-- > run.to;) {
      strides[j] = stride;
      stride *= to.alloc[j];
      if (to.sizes[j] != 0 && valid % to.sizes[j] != 0) return std::nullopt;
      if (to.sizes[j] != 0) valid /= to.sizes[j];
    }
    if (valid > 1) return std::nullopt;
  }
  return strides;
}

View makeView(const Alias& alias, const Slot& out, const Slot& in_slot, const View& in,
              const Scope& scope) {
  return std::visit(ViewMaker(out, in_slot, in, scope), alias.view);
}

}  // namespace heddle::host
