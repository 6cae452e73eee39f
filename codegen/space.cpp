#include "codegen/space.h"

#include <algorithm>

#include "ir/error.h"

namespace heddle::codegen {
namespace {

int64_t productOf(std::vector<int64_t>::const_iterator from,
                  std::vector<int64_t>::const_iterator to) {
  int64_t product = 1;
  for (; from != to; ++from) product *= *from;
  return product;
}

// Extents of the axes, from the descriptor of any operand that moves along them.
class Extents {
 public:
  Extents(const Fusion& segment, const Analysis& analysis)
      : segment_(segment), analysis_(analysis), values_(analysis.reduced.size(), -1) {}

  void read(ValueId id, const TensorDesc& desc) {
    const Value& value = segment_.value(id);
    HEDDLE_USER_CHECK(desc.rank() == value.tensor.rank(),
                      "%{}: expected a tensor of rank {}, got sizes {}", value.name,
                      value.tensor.rank(), str(desc.sizes));
    for (size_t i = 0; i < desc.rank(); ++i) {
      int axis = analysis_.axes[static_cast<size_t>(id)][i];
      if (axis < 0) continue;
      int64_t& extent = values_[static_cast<size_t>(axis)];
      HEDDLE_USER_CHECK(extent < 0 || extent == desc.sizes[i],
                        "axis {} of %{}: expected {} elements as in the other operands, got {}", i,
                        value.name, extent, desc.sizes[i]);
      extent = desc.sizes[i];
    }
  }

  // The rules of kernels let no axis pass that no operand has.
  std::vector<int64_t> finish() {
    for (int64_t extent : values_) {
      HEDDLE_CHECK(extent >= 0, "segment {}: an axis of no operand", segment_.name);
    }
    return std::move(values_);
  }

 private:
  const Fusion& segment_;
  const Analysis& analysis_;
  std::vector<int64_t> values_;
};

SpaceTensor layOut(const Analysis& analysis, ValueId id, const TensorDesc& desc, int operand) {
  SpaceTensor tensor;
  tensor.operand = operand;
  tensor.dtype = desc.dtype;
  tensor.strides.assign(analysis.reduced.size(), 0);
  for (size_t i = 0; i < desc.rank(); ++i) {
    int axis = analysis.axes[static_cast<size_t>(id)][i];
    if (axis >= 0) tensor.strides[static_cast<size_t>(axis)] = desc.strides[i];
  }
  return tensor;
}

// Does axis `a` belong inside axis `b`? The tensors that move along both vote with their bytes.
bool belongsInside(const Space& space, size_t a, size_t b) {
  double votes = 0;
  for (const SpaceTensor& tensor : space.tensors) {
    int64_t stride_a = tensor.strides[a];
    int64_t stride_b = tensor.strides[b];
    if (stride_a == 0 || stride_b == 0 || stride_a == stride_b) continue;
    double bytes = static_cast<double>(sizeOf(tensor.dtype));
    for (size_t i = 0; i < space.extents.size(); ++i) {
      if (tensor.strides[i] != 0) bytes *= static_cast<double>(space.extents[i]);
    }
    // A tie of one input and one output goes to the output: stores suffer more.
    if (tensor.output) bytes *= 1.25;
    votes += stride_a < stride_b ? bytes : -bytes;
  }
  return votes > 0;
}

// The votes need not be transitive, so this is an insertion sort rather than std::sort.
std::vector<size_t> orderAxes(const Space& space, std::vector<size_t> axes) {
  for (size_t i = 1; i < axes.size(); ++i) {
    for (size_t j = i; j > 0 && belongsInside(space, axes[j - 1], axes[j]); --j) {
      std::swap(axes[j - 1], axes[j]);
    }
  }
  return axes;
}

bool mergeable(const Space& space, size_t outer, size_t inner) {
  return std::all_of(space.tensors.begin(), space.tensors.end(), [&](const SpaceTensor& t) {
    return t.strides[outer] == t.strides[inner] * space.extents[inner];
  });
}

// Appends the axes `order` of `from` to `to`, merged.
void appendMerged(const Space& from, const std::vector<size_t>& order, Space& to) {
  size_t first = to.extents.size();
  for (size_t i = 0; i < order.size(); ++i) {
    size_t axis = order[i];
    bool merge = to.extents.size() > first && mergeable(from, order[i - 1], axis);
    if (merge) {
      to.extents.back() *= from.extents[axis];
    } else {
      to.extents.push_back(from.extents[axis]);
    }
    for (size_t t = 0; t < from.tensors.size(); ++t) {
      if (merge) to.tensors[t].strides.pop_back();
      to.tensors[t].strides.push_back(from.tensors[t].strides[axis]);
    }
  }
}

void appendUnitAxis(Space& space, int64_t stride) {
  space.extents.push_back(1);
  for (SpaceTensor& tensor : space.tensors) tensor.strides.push_back(stride);
}

}  // namespace

int64_t Space::keptCount() const { return productOf(extents.begin(), extents.begin() + kept); }

int64_t Space::reducedCount() const { return productOf(extents.begin() + kept, extents.end()); }

Space coalesce(const Fusion& segment, const Analysis& analysis,
               const std::vector<TensorDesc>& inputs, const std::vector<TensorDesc>& outputs) {
  HEDDLE_CHECK(
      inputs.size() == segment.inputs().size() && outputs.size() == segment.outputs().size(),
      "planKernel got {} inputs and {} outputs for a segment with {} and {}", inputs.size(),
      outputs.size(), segment.inputs().size(), segment.outputs().size());
  Space raw;
  Extents extents(segment, analysis);
  auto add = [&](ValueId id, const TensorDesc& desc, int operand, bool output) {
    if (segment.value(id).is_scalar) return;
    extents.read(id, desc);
    raw.tensors.push_back(layOut(analysis, id, desc, operand));
    raw.tensors.back().output = output;
  };
  int operand = 0;
  for (size_t i = 0; i < inputs.size(); ++i) add(segment.inputs()[i], inputs[i], operand++, false);
  for (size_t i = 0; i < outputs.size(); ++i)
    add(segment.outputs()[i], outputs[i], operand++, true);
  raw.extents = extents.finish();

  std::vector<size_t> kept;
  std::vector<size_t> reduced;
  for (size_t axis = 0; axis < raw.extents.size(); ++axis) {
    if (raw.extents[axis] == 1) continue;
    (analysis.reduced[axis] ? reduced : kept).push_back(axis);
  }
  Space space;
  space.tensors = raw.tensors;
  for (SpaceTensor& tensor : space.tensors) tensor.strides.clear();
  appendMerged(raw, orderAxes(raw, kept), space);
  // A single element counts as contiguous, and so shares its kernel with longer tensors.
  if (kept.empty()) appendUnitAxis(space, analysis.reductions.empty() ? 1 : 0);
  space.kept = static_cast<int>(space.extents.size());
  appendMerged(raw, orderAxes(raw, reduced), space);
  if (reduced.empty() && !analysis.reductions.empty()) appendUnitAxis(space, 0);
  return space;
}

}  // namespace heddle::codegen
