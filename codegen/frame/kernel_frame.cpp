#include "codegen/frame/kernel_frame.h"

#include <algorithm>
#include <cstring>

#include "ir/base/check.h"

namespace heddle::codegen {

void ArgumentLayout::addField(const std::string& name, const std::string& type, int64_t value,
                              ArgumentValue what, bool index) {
  fields_.push_back({name, type, static_cast<int32_t>(bytes_.size()), index});
  fields_.back().value = what;
  bytes_.resize(bytes_.size() + sizeof(value));
  std::memcpy(bytes_.data() + bytes_.size() - sizeof(value), &value, sizeof(value));
}

void ArgumentLayout::addPointer(const std::string& name, int32_t operand) {
  addField(name, "void*", 0, {});
  pointers_.push_back({fields_.back().offset, operand});
}

IndexExpr ArgumentLayout::addSize(const std::string& name, int64_t value, ArgumentValue what) {
  addField(name, "long long", value, what, true);
  return IndexExpr::parameter(name, value);
}

IndexExpr ArgumentLayout::addDivisor(const std::string& name, int64_t value, ArgumentValue what) {
  addSize(name, value, what);
  fields_.back().divisor = true;
  if (what.kind == ArgumentValue::Kind::AxisItems) what.kind = ArgumentValue::Kind::AxisInverse;
  addOffset(name + "_inverse", inverseOf(value), what);
  return IndexExpr::parameter(name, value);
}

void ArgumentLayout::addOffset(const std::string& name, int64_t value, ArgumentValue what) {
  addField(name, "long long", value, what);
}

void ArgumentLayout::addScalar(const std::string& name, int32_t operand, DType dtype) {
  if (dtype != DType::Bool) dtype = isFloat(dtype) ? DType::F64 : DType::I64;
  addField(name,
           dtype == DType::F64   ? "double"
           : dtype == DType::I64 ? "long long"
                                 : "bool",
           0, {});
  scalars_.push_back({fields_.back().offset, operand, dtype});
}

std::string ArgumentLayout::structText(const std::string& name) const {
  std::string text = fmt::format("struct {} {{\n", name);
  for (const Field& field : fields_) {
    text += fmt::format("  alignas(8) {} {};\n", field.type, field.name);
  }
  // Each field takes exactly 8 bytes. A check of the size of the struct therefore checks every
  // offset.
  text += fmt::format("}};\nstatic_assert(sizeof({}) == {}, \"layout\");\n", name, bytes_.size());
  return text;
}

std::vector<ArgumentValue> ArgumentLayout::values() const {
  std::vector<ArgumentValue> values;
  for (const Field& field : fields_) values.push_back(field.value);
  return values;
}

void ArgumentLayout::moveInto(LaunchStage& stage) {
  const auto offset = static_cast<int32_t>(stage.args.size());
  stage.args.insert(stage.args.end(), bytes_.begin(), bytes_.end());
  for (LaunchStage::PointerPatch patch : pointers_) {
    patch.offset += offset;
    stage.pointers.push_back(patch);
  }
  for (LaunchStage::ScalarPatch patch : scalars_) {
    patch.offset += offset;
    stage.scalars.push_back(patch);
  }
}

namespace {

class FrameBuilder {
 public:
  explicit FrameBuilder(const FrameRequest& request)
      : request_(request),
        space_(request.space),
        numbers_{request.space, request.schedule, request.reduced_count} {
    frame_.entry = request.entry;
    frame_.extents = request.space.extents;
    frame_.merged = request.space.merged;
    frame_.accumulators = request.accumulators;
  }

  // The order of these calls is the order of the fields in the argument struct.
  KernelFrame build() {
    addPointersAndScalars();
    addItems();
    addCoordinates();
    for (size_t t = 0; t < space_.tensors.size(); ++t) addAccess(t);
    addIndexedAxes();
    for (size_t p = 0; p < space_.indexed.size(); ++p) addIndexed(p);
    // A GPU kernel uses 64-bit indices only if it must: they take more registers and make divisions
    // slow. A CPU kernel always uses them, because they cost nothing there.
    frame_.wide_index = schedule().target == Target::Cpp || needsWideIndex(numbers_);
    return std::move(frame_);
  }

 private:
  using Kind = ArgumentValue::Kind;
  const Schedule& schedule() const { return request_.schedule; }

  static ArgumentValue value(Kind kind, size_t index = 0, size_t axis = 0) {
    return {kind, static_cast<int32_t>(index), static_cast<int32_t>(axis)};
  }

  IndexExpr addSize(const std::string& name, ArgumentValue what) {
    return frame_.args.addSize(name, valueOf(what, numbers_), what);
  }

  void addOffset(const std::string& name, ArgumentValue what) {
    frame_.args.addOffset(name, valueOf(what, numbers_), what);
  }

  void addPointersAndScalars() {
    for (size_t t = 0; t < space_.tensors.size(); ++t) {
      const SpaceTensor& tensor = space_.tensors[t];
      frame_.args.addPointer(fmt::format("t{}", t),
                             tensor.isInWorkspace() ? LaunchStage::kWorkspace : tensor.operand);
    }
    for (size_t p = 0; p < space_.indexed.size(); ++p) {
      frame_.args.addPointer(fmt::format("p{}_data", p), space_.indexed[p].operand);
    }
    if (request_.board) frame_.args.addPointer("board", LaunchStage::kWorkspace);
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
    frame_.kept_items = addSize("kept_items", value(Kind::KeptItems));
    frame_.lane_extent = addSize("lane_extent", value(Kind::LaneExtent));
    if (schedule().target == Target::Cpp) {
      frame_.chunk = addSize("chunk", value(Kind::Chunk));
      frame_.items_per_tile = addSize("items_per_tile", value(Kind::ItemsPerTile));
      addOffset("streams", value(Kind::Streams));
    } else {
      frame_.chunk = IndexExpr::constant(schedule().lanes);
    }
    if (!space_.hasReduced()) return;
    frame_.reduced_items = addSize("reduced_items", value(Kind::ReducedItems));
    frame_.reduced_count = addSize("reduced_count", value(Kind::ReducedCount));
    frame_.splits = addSize("splits", value(Kind::Splits));
    frame_.span = addSize("span", value(Kind::Span));
  }

  // Returns the coordinates of an item along the axes [begin, end). `item` is the index of the
  // item. The function splits it into coordinates, starting with the innermost axis.
  std::vector<Coordinate> peel(const char* prefix, size_t begin, size_t end,
                               const IndexExpr& item) {
    std::vector<Coordinate> coordinates(end - begin);
    IndexExpr rest = item;
    for (size_t axis = end; axis-- > begin;) {
      bool lanes = axis == schedule().laneAxis(space_);
      Coordinate& coordinate = coordinates[axis - begin];
      coordinate.name = fmt::format("{}{}", prefix, axis - begin);
      bool outermost = axis == begin;
      IndexExpr own = rest;
      if (!outermost) {
        const std::string name = "n_" + coordinate.name;
        const ArgumentValue items = value(Kind::AxisItems, 0, axis);
        const bool is_cuda = schedule().target == Target::Cuda;
        IndexExpr count = is_cuda ? frame_.args.addDivisor(name, valueOf(items, numbers_), items)
                                  : addSize(name, items);
        coordinate.items = count.str();
        own = IndexExpr::mod(rest, count);
        rest = IndexExpr::div(rest, count);
      }
      coordinate.lanes = lanes;
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
      frame_.reduced = peel("r", space_.kept, space_.extents.size(),
                            itemVariable("reduced", frame_.reduced_items.hi()));
    }
  }

  IndexExpr strideOf(size_t tensor, size_t axis, const std::string& axis_name) {
    int64_t stride = space_.tensors[tensor].strides[axis];
    if (stride == 0 || stride == 1) return IndexExpr::constant(stride);
    return addSize(fmt::format("s{}_{}", tensor, axis_name), value(Kind::Stride, tensor, axis));
  }

  void addAccess(size_t t) {
    const SpaceTensor& tensor = space_.tensors[t];
    Access access;
    access.name = fmt::format("t{}", t);
    access.operand = tensor.operand;
    access.dtype = tensor.dtype;
    access.output = tensor.output;
    access.aligned_items = hasAlignedItems(tensor, numbers_);
    access.once =
        std::find(tensor.strides.begin(), tensor.strides.end(), 0) == tensor.strides.end();
    if (tensor.isInWorkspace()) {
      access.kept_offset = addSize(fmt::format("base{}", t), value(Kind::Base, t));
      // Each split (Schedule::splits) or part of ColumnSums stores partial results of its own.
      if (tensor.output) {
        access.kept_offset =
            access.kept_offset + IndexExpr::variable("split", 0, schedule().splits - 1) *
                                     addSize(fmt::format("row{}", t), value(Kind::PartStride, t));
      }
    }
    size_t lane_axis = schedule().laneAxis(space_);
    for (size_t axis = 0; axis < space_.extents.size(); ++axis) {
      bool kept = axis < space_.kept;
      const Coordinate& coordinate = kept ? frame_.kept[axis] : frame_.reduced[axis - space_.kept];
      IndexExpr stride = strideOf(t, axis, coordinate.name);
      IndexExpr& offset = kept ? access.kept_offset : access.reduced_offset;
      offset = offset + named(coordinate) * stride;
      if (axis == lane_axis) {
        access.lane_stride = stride;
        access.lane = stride.kind() == IndexExpr::Kind::Parameter ? LaneStride::Any
                      : tensor.strides[axis] == 1                 ? LaneStride::One
                                                                  : LaneStride::Zero;
      }
    }
    if (schedule().shifted && !access.output && access.lane == LaneStride::One) {
      access.vector_begins = addSize(fmt::format("whole{}", t), value(Kind::VectorBegins, t));
    }
    frame_.accesses.push_back(std::move(access));
  }

  void addIndexedAxes() {
    for (const SpaceCoordinate& c : space_.coordinates) {
      AxisCoordinate indexed;
      if (c.axis >= 0) {
        const size_t axis = c.axis;
        const bool kept = axis < space_.kept;
        indexed.axis = fmt::format("{}{}", kept ? "k" : "r", kept ? axis : axis - space_.kept);
        indexed.lanes = axis == schedule().laneAxis(space_);
      }
      frame_.coordinates.push_back(std::move(indexed));
    }
    auto ask = [&](CoordinateId c, bool local) {
      if (!c.valid() || local) return;
      if (!frame_.coordinates[c].offset.empty()) return;
      frame_.coordinates[c].offset = fmt::format("o{}", c);
      addSize(frame_.coordinates[c].offset, value(Kind::Offset, c.index()));
    };
    for (const Body* body : request_.bodies) {
      for (const Node& node : body->nodes) {
        if (node.kind == Node::Kind::Coordinate) ask(CoordinateId(node.index), false);
        for (const ComputedIndex& computed : node.computed_indices)
          ask(computed.coordinate, computed.local);
      }
    }
    addWidths();
  }

  void addWidths() {
    frame_.widths.resize(space_.widths.size());
    for (const Body* body : request_.bodies) {
      for (const Node& node : body->nodes) {
        for (const ComputedIndex& computed : node.computed_indices) {
          if (computed.width < 0) continue;
          const size_t w = computed.width;
          if (!frame_.widths[w].empty()) continue;
          frame_.widths[w] = fmt::format("w{}", w);
          addOffset(frame_.widths[w], value(Kind::Width, w));
        }
      }
    }
  }

  void addIndexed(size_t p) {
    const IndexedTensor& tensor = space_.indexed[p];
    IndexedAccess access{fmt::format("p{}_data", p), tensor.operand, tensor.dtype, {}, {}, {}, {}};
    access.begins.resize(tensor.extents.size());
    access.wholes.resize(tensor.extents.size());
    for (size_t axis = 0; axis < tensor.extents.size(); ++axis) {
      auto name = [&](const char* what) { return fmt::format("p{}_{}{}", p, what, axis); };
      access.extents.push_back(addSize(name("n"), value(Kind::IndexedExtent, p, axis)));
      const int64_t stride = tensor.strides[axis];
      access.strides.push_back(stride == 0 || stride == 1
                                   ? IndexExpr::constant(stride)
                                   : addSize(name("s"), value(Kind::IndexedStride, p, axis)));
    }
    addBlocks(p, access);
    frame_.indexed.push_back(std::move(access));
  }

  void addBlocks(size_t p, IndexedAccess& access) {
    for (const Body* body : request_.bodies) {
      for (const Node& node : body->nodes) {
        if (node.kind != Node::Kind::LoadAt || node.index != static_cast<int>(p)) continue;
        for (size_t axis = 0; axis < node.computed_indices.size(); ++axis) {
          if (!node.computed_indices[axis].in_block || !access.begins[axis].empty()) continue;
          access.begins[axis] = fmt::format("p{}_begin{}", p, axis);
          access.wholes[axis] = fmt::format("p{}_whole{}", p, axis);
          addOffset(access.begins[axis], value(Kind::IndexedOffset, p, axis));
          addOffset(access.wholes[axis], value(Kind::IndexedGlobal, p, axis));
        }
      }
    }
  }

  const FrameRequest& request_;
  const Space& space_;
  const FrameNumbers numbers_;
  KernelFrame frame_;
};

}  // namespace

KernelFrame buildFrame(const FrameRequest& request) { return FrameBuilder(request).build(); }

}  // namespace heddle::codegen
