#include "codegen/plan/kernel_frame.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ir/base/error.h"

namespace heddle::codegen {

void ArgumentLayout::addField(const std::string& name, const std::string& type, int64_t value,
                              bool index) {
  fields_.push_back({name, type, static_cast<int32_t>(bytes_.size()), index});
  bytes_.resize(bytes_.size() + sizeof(value));
  std::memcpy(bytes_.data() + bytes_.size() - sizeof(value), &value, sizeof(value));
}

void ArgumentLayout::addPointer(const std::string& name, int32_t operand) {
  addField(name, "void*", 0);
  pointers_.push_back({fields_.back().offset, operand});
}

IndexExpr ArgumentLayout::addSize(const std::string& name, int64_t value) {
  addField(name, "long long", value, true);
  return IndexExpr::parameter(name, value);
}

namespace {

// Returns the factor and, in the upper half, the shift with which hd::Divisor divides by `divisor`
// (T. Granlund, P. L. Montgomery, "Division by invariant integers using multiplication", 1994). For
// 0 <= n < 2^31, n / divisor is n * factor / 2^(31 + shift), rounded down.
int64_t inverseOf(int64_t divisor) {
  const auto d = static_cast<uint64_t>(divisor);
  if (d == 0 || d >= uint64_t{1} << 31) return 0;  // the kernel does not use it
  const auto shift = static_cast<uint64_t>(std::bit_width(d - 1));
  const uint64_t factor = ((uint64_t{1} << (31 + shift)) + d - 1) / d;
  return static_cast<int64_t>(shift << 32 | factor);
}

}  // namespace

IndexExpr ArgumentLayout::addDivisor(const std::string& name, int64_t value) {
  addSize(name, value);
  fields_.back().divisor = true;
  addOffset(name + "_inverse", inverseOf(value));
  return IndexExpr::parameter(name, value);
}

void ArgumentLayout::addOffset(const std::string& name, int64_t value) {
  addField(name, "long long", value);
}

void ArgumentLayout::addScalar(const std::string& name, int32_t operand, DType dtype) {
  if (dtype != DType::Bool) dtype = isFloat(dtype) ? DType::F64 : DType::I64;
  addField(name, dtype == DType::F64 ? "double" : dtype == DType::I64 ? "long long" : "bool", 0);
  scalars_.push_back({fields_.back().offset, operand, dtype});
}

std::string ArgumentLayout::structText(const std::string& name) const {
  std::string text = fmt::format("struct {} {{\n", name);
  for (const Field& field : fields_) {
    text += fmt::format("  alignas(8) {} {};\n", field.type, field.name);
  }
  // Fields of at most 8 bytes, each aligned to 8: the size fixes every offset.
  text += fmt::format("}};\nstatic_assert(sizeof({}) == {}, \"layout\");\n", name, bytes_.size());
  return text;
}

void ArgumentLayout::moveInto(LaunchStage& stage) {
  stage.args = std::move(bytes_);
  stage.pointers = std::move(pointers_);
  stage.scalars = std::move(scalars_);
}

namespace {

class FrameBuilder {
 public:
  explicit FrameBuilder(const FrameRequest& request) : request_(request), space_(request.space) {
    frame_.entry = request.entry;
    frame_.accumulators = request.accumulators;
  }

  KernelFrame build() {
    addPointersAndScalars();
    addItems();
    addCoordinates();
    for (size_t t = 0; t < space_.tensors.size(); ++t) addAccess(t);
    addIndexedAxes();
    for (size_t p = 0; p < space_.indexed.size(); ++p) addIndexed(p);
    chooseIndexWidth();
    return std::move(frame_);
  }

 private:
  const Schedule& schedule() const { return request_.schedule; }

  void addPointersAndScalars() {
    for (size_t t = 0; t < space_.tensors.size(); ++t) {
      const SpaceTensor& tensor = space_.tensors[t];
      frame_.args.addPointer(fmt::format("t{}", t),
                             tensor.isInWorkspace() ? LaunchStage::kWorkspace : tensor.operand);
    }
    for (size_t p = 0; p < space_.indexed.size(); ++p) {
      frame_.args.addPointer(fmt::format("p{}_data", p), space_.indexed[p].operand);
    }
    std::vector<int> seen;
    for (const Body* body : request_.bodies) {
      for (const Node& node : body->nodes) {
        if (node.kind != Node::Kind::Scalar) continue;
        if (std::find(seen.begin(), seen.end(), node.index) != seen.end()) continue;
        seen.push_back(node.index);
        frame_.args.addScalar(fmt::format("scalar{}", node.index), node.index, node.dtype);
      }
    }
  }

  void addItems() {
    int64_t kept = keptItems(schedule(), space_);
    int64_t reduced = space_.hasReduced() ? reducedItems(schedule(), space_) : 1;
    frame_.kept_items = frame_.args.addSize("kept_items", kept);
    frame_.lane_extent =
        frame_.args.addSize("lane_extent", space_.extents[schedule().laneAxis(space_)]);
    if (schedule().target == Target::Cpp) {
      frame_.chunk = frame_.args.addSize("chunk", schedule().chunk);
      frame_.items_per_tile = frame_.args.addSize("items_per_tile", schedule().items_per_tile);
    } else {
      frame_.chunk = IndexExpr::constant(schedule().lanes);
    }
    if (!space_.hasReduced()) return;
    frame_.reduced_items = frame_.args.addSize("reduced_items", reduced);
    frame_.reduced_count = frame_.args.addSize("reduced_count", request_.reduced_count);
    frame_.splits = frame_.args.addSize("splits", schedule().splits);
    int64_t span = (reduced + schedule().splits - 1) / schedule().splits;
    frame_.span = frame_.args.addSize("span", span);
  }

  // Peels the axes [begin, end) off the item number, innermost first.
  std::vector<Coordinate> peel(const char* prefix, int begin, int end, const IndexExpr& item) {
    std::vector<Coordinate> coordinates(static_cast<size_t>(end - begin));
    IndexExpr rest = item;
    for (int i = end - 1; i >= begin; --i) {
      size_t axis = static_cast<size_t>(i);
      bool lanes = axis == schedule().laneAxis(space_);
      Coordinate& coordinate = coordinates[static_cast<size_t>(i - begin)];
      coordinate.name = fmt::format("{}{}", prefix, i - begin);
      bool outermost = i == begin;
      IndexExpr own = rest;
      if (!outermost) {
        int64_t extent = space_.extents[axis];
        if (lanes) extent = (extent + schedule().chunk - 1) / schedule().chunk;
        const std::string name = "n_" + coordinate.name;
        const bool is_cuda = schedule().target == Target::Cuda;
        IndexExpr count =
            is_cuda ? frame_.args.addDivisor(name, extent) : frame_.args.addSize(name, extent);
        own = IndexExpr::mod(rest, count);
        rest = IndexExpr::div(rest, count);
      }
      coordinate.value = lanes ? own * frame_.chunk : own;
      if (lanes) frame_.lane_start = named(coordinate);
    }
    return coordinates;
  }

  static IndexExpr named(const Coordinate& c) {
    return IndexExpr::variable(c.name, c.value.lo(), c.value.hi());
  }

  void addCoordinates() {
    auto itemVariable = [](const char* name, int64_t items) {
      return IndexExpr::variable(name, 0, std::max<int64_t>(items - 1, 0));
    };
    frame_.kept = peel("k", 0, space_.kept, itemVariable("kept", frame_.kept_items.hi()));
    if (space_.hasReduced()) {
      frame_.reduced = peel("r", space_.kept, static_cast<int>(space_.extents.size()),
                            itemVariable("reduced", frame_.reduced_items.hi()));
    }
  }

  IndexExpr strideOf(size_t tensor, size_t axis, const std::string& axis_name) {
    int64_t stride = space_.tensors[tensor].strides[axis];
    if (stride == 0 || stride == 1) return IndexExpr::constant(stride);
    return frame_.args.addSize(fmt::format("s{}_{}", tensor, axis_name), stride);
  }

  void addAccess(size_t t) {
    const SpaceTensor& tensor = space_.tensors[t];
    Access access;
    access.name = fmt::format("t{}", t);
    access.dtype = tensor.dtype;
    access.output = tensor.output;
    const int64_t lane_bytes = schedule().lanes * sizeOf(tensor.dtype);
    access.aligned_items = tensor.alignment % std::min<int64_t>(lane_bytes, kFullAlignment) == 0;
    if (tensor.isInWorkspace()) {
      access.kept_offset = frame_.args.addSize(fmt::format("base{}", t), tensor.base);
      access.aligned_items = access.aligned_items && tensor.base % schedule().lanes == 0;
      // Each part has its own row of accumulators.
      if (tensor.output) {
        const int64_t row = tensor.part_stride;
        access.kept_offset =
            access.kept_offset + IndexExpr::variable("split", 0, schedule().splits - 1) *
                                     frame_.args.addSize(fmt::format("row{}", t), row);
        access.aligned_items = access.aligned_items && row % schedule().lanes == 0;
      }
    }
    size_t lane_axis = schedule().laneAxis(space_);
    for (size_t axis = 0; axis < space_.extents.size(); ++axis) {
      bool kept = static_cast<int>(axis) < space_.kept;
      const Coordinate& coordinate =
          kept ? frame_.kept[axis] : frame_.reduced[axis - static_cast<size_t>(space_.kept)];
      IndexExpr stride = strideOf(t, axis, coordinate.name);
      IndexExpr& offset = kept ? access.kept_offset : access.reduced_offset;
      offset = offset + named(coordinate) * stride;
      if (axis == lane_axis) {
        access.lane_stride = stride;
        access.lane = stride.kind() == IndexExpr::Kind::Parameter ? LaneStride::Any
                      : tensor.strides[axis] == 1                 ? LaneStride::One
                                                                  : LaneStride::Zero;
      } else if (tensor.strides[axis] % schedule().lanes != 0) {
        access.aligned_items = false;
      }
    }
    frame_.accesses.push_back(std::move(access));
  }

  void addIndexedAxes() {
    for (const SpaceCoordinate& c : space_.coordinates) {
      AxisCoordinate indexed;
      if (c.axis >= 0) {
        const bool kept = c.axis < space_.kept;
        indexed.axis = fmt::format("{}{}", kept ? "k" : "r", kept ? c.axis : c.axis - space_.kept);
        indexed.lanes = static_cast<size_t>(c.axis) == schedule().laneAxis(space_);
      }
      frame_.coordinates.push_back(std::move(indexed));
    }
    auto ask = [&](int coordinate, bool local) {
      if (coordinate < 0 || local) return;
      const auto c = static_cast<size_t>(coordinate);
      if (!frame_.coordinates[c].offset.empty()) return;
      frame_.coordinates[c].offset = fmt::format("o{}", c);
      frame_.args.addOffset(frame_.coordinates[c].offset, space_.coordinates[c].offset);
    };
    for (const Body* body : request_.bodies) {
      for (const Node& node : body->nodes) {
        if (node.kind == Node::Kind::Coordinate) ask(node.index, false);
        for (const PlaceAlong& place : node.places) ask(place.coordinate, place.local);
      }
    }
  }

  void addIndexed(size_t p) {
    const IndexedTensor& tensor = space_.indexed[p];
    IndexedAccess access{fmt::format("p{}_data", p), tensor.dtype, {}, {}, {}, {}};
    access.begins.resize(tensor.extents.size());
    access.wholes.resize(tensor.extents.size());
    for (size_t axis = 0; axis < tensor.extents.size(); ++axis) {
      auto name = [&](const char* what) { return fmt::format("p{}_{}{}", p, what, axis); };
      access.extents.push_back(frame_.args.addSize(name("n"), tensor.extents[axis]));
      const int64_t stride = tensor.strides[axis];
      access.strides.push_back(stride == 0 || stride == 1 ? IndexExpr::constant(stride)
                                                          : frame_.args.addSize(name("s"), stride));
    }
    addBlocks(p, access);
    frame_.indexed.push_back(std::move(access));
  }

  void addBlocks(size_t p, IndexedAccess& access) {
    for (const Body* body : request_.bodies) {
      for (const Node& node : body->nodes) {
        if (node.kind != Node::Kind::LoadAt || node.index != static_cast<int>(p)) continue;
        for (size_t axis = 0; axis < node.places.size(); ++axis) {
          if (!node.places[axis].in_block || !access.begins[axis].empty()) continue;
          access.begins[axis] = fmt::format("p{}_begin{}", p, axis);
          access.wholes[axis] = fmt::format("p{}_whole{}", p, axis);
          frame_.args.addOffset(access.begins[axis], space_.indexed[p].offsets[axis]);
          frame_.args.addOffset(access.wholes[axis], space_.indexed[p].global[axis]);
        }
      }
    }
  }

  // 64-bit numbers cost registers and slow divisions on a GPU; a CPU loses nothing by them.
  void chooseIndexWidth() {
    if (schedule().target == Target::Cpp) {
      frame_.wide_index = true;
      return;
    }
    // Below 2^30 even the last step of a grid-stride loop stays within 32 bits.
    constexpr int64_t kLimit = int64_t{1} << 30;
    auto wide = [](const IndexExpr& e) { return e.hi() >= kLimit; };
    frame_.wide_index = wide(frame_.kept_items) || wide(frame_.reduced_items) ||
                        wide(frame_.lane_extent) || wide(frame_.reduced_count);
    for (const Access& access : frame_.accesses) {
      IndexExpr last = access.kept_offset + access.reduced_offset +
                       IndexExpr::constant(schedule().lanes) * access.lane_stride;
      frame_.wide_index = frame_.wide_index || wide(last);
    }
    for (const IndexedAccess& access : frame_.indexed) {
      IndexExpr end;
      for (size_t i = 0; i < access.extents.size(); ++i) {
        end = end + access.extents[i] * access.strides[i];
        frame_.wide_index = frame_.wide_index || wide(access.extents[i]);
      }
      frame_.wide_index = frame_.wide_index || wide(end);
    }
  }

  const FrameRequest& request_;
  const Space& space_;
  KernelFrame frame_;
};

}  // namespace

KernelFrame buildFrame(const FrameRequest& request) { return FrameBuilder(request).build(); }

}  // namespace heddle::codegen
