#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "codegen/frame/argument_value.h"
#include "codegen/kernel.h"
#include "codegen/plan/body.h"
#include "codegen/plan/index_expr.h"
#include "codegen/plan/schedule.h"
#include "codegen/plan/space.h"

namespace heddle::codegen {

// The layout and the bytes of the argument struct of one entry point (LaunchStage::args), or of one
// part of a shared launch (codegen/families/shared_launch.h). The kernel text declares the same
// struct and asserts its size. Every field takes 8 bytes: a pointer, an i64, an f64 or a bool.
class ArgumentLayout {
 public:
  struct Field {
    std::string name;
    std::string type;    // in the kernel language
    int32_t offset = 0;  // bytes
    bool index = false;  // the kernel converts the field to its index type (i32 or i64)
    // The kernel divides indices by this field. The next field is then an i64 with a factor and a
    // shift, which replace the slow division instruction (hd::Divisor in
    // codegen/runtime/cuda_runtime.h).
    bool divisor = false;
    ArgumentValue value = {};
  };
  void addPointer(const std::string& name, int32_t operand);
  // Adds an i64 field, which the kernel converts to its index type. Returns
  // IndexExpr::parameter(name, value). `what` says where the value comes from (Field::value).
  IndexExpr addSize(const std::string& name, int64_t value, ArgumentValue what = kOther);
  // Adds a number of items by which a CUDA kernel divides indices. Does the same as addSize(), and
  // also adds the field `<name>_inverse`.
  IndexExpr addDivisor(const std::string& name, int64_t value, ArgumentValue what = kOther);
  // Adds an i64 field, which stays an i64 in the kernel.
  void addOffset(const std::string& name, int64_t value, ArgumentValue what = kOther);
  // Adds a field for a run-time scalar. The field of a bool is a bool, the field of every integer
  // is an i64, and the field of every float is an f64.
  void addScalar(const std::string& name, int32_t operand, DType dtype);

  const std::vector<Field>& fields() const { return fields_; }
  std::vector<ArgumentValue> values() const;      // values of the fields
  size_t bytes() const { return bytes_.size(); }  // size of the struct
  // Returns the declaration of the struct in the kernel language.
  std::string structText(const std::string& name) const;
  // Appends the bytes of the struct to `stage`, with the patches for pointers and scalars.
  void moveInto(LaunchStage& stage);

 private:
  static constexpr ArgumentValue kOther{ArgumentValue::Kind::Other};
  void addField(const std::string& name, const std::string& type, int64_t value, ArgumentValue what,
                bool index = false);
  std::vector<Field> fields_;
  std::vector<std::byte> bytes_;
  std::vector<LaunchStage::PointerPatch> pointers_;
  std::vector<LaunchStage::ScalarPatch> scalars_;
};

// The distance between the elements that two neighbouring lanes (codegen/plan/schedule.h) access:
// 0 elements, 1 element, or any other number.
enum class LaneStride : uint8_t { Zero, One, Any };

// One tensor as the loops access it. Lane i accesses the element at the offset kept_offset +
// reduced_offset + i * lane_stride, counted in elements from the pointer.
struct Access {
  std::string name;  // also the name of the field with its pointer
  int operand = 0;   // SpaceTensor::operand
  DType dtype = DType::F32;
  bool output = false;
  // Computed from the coordinates of the kept axes. If the tensor is in the workspace,
  // SpaceTensor::base is added. If it is also an output, the offset of the partial results of the
  // current split is added too.
  IndexExpr kept_offset;
  IndexExpr reduced_offset;  // computed from the coordinates of the reduced axes
  LaneStride lane = LaneStride::Zero;
  IndexExpr lane_stride;
  // CUDA: hasAlignedItems() (codegen/frame/argument_value.h). The kernel may then load items as
  // vectors.
  bool aligned_items = false;
  // Inputs of shifted reductions (Schedule::shifted): the number of offsets at which a complete
  // vector may begin, if the tensor has as many elements as fit between its first and its last one.
  // Otherwise 0.
  IndexExpr vector_begins;
  // true: no axis has the stride 0. Unless the strides overlap, each element then belongs to one
  // position in the space. A kernel that passes over the space once then needs the element only
  // once.
  bool once = false;
};

// The coordinate of an item (codegen/plan/schedule.h) along one axis of the space. `value` computes
// it from the number of the item, which is the variable "kept" or "reduced".
struct Coordinate {
  std::string name;
  IndexExpr value;
  // Number of items along the axis, as text. Empty for the outermost axis.
  std::string items;
  // true: each item has `chunk` elements along the axis, so `value` is a multiple of `chunk`.
  bool lanes = false;
};

// The index of the current element along one axis of the space, for bodies that use it. The index
// is the sum of the coordinate `axis`, the number of the lane (if `lanes` is true) and the
// argument `offset`.
struct AxisCoordinate {
  std::string axis;    // name of the coordinate; empty: the axis has one element
  bool lanes = false;  // lanes run along this axis
  // Name of the argument with the index of the first element of this rank's shard. Empty: no body
  // uses the index in the unsharded tensor.
  std::string offset;
};

// A tensor that is read at computed indices, with extents and strides per logical axis.
struct IndexedAccess {
  std::string name;  // also the name of the field with its pointer
  int operand = 0;   // index into the inputs of the segment
  DType dtype = DType::F32;
  std::vector<IndexExpr> extents;  // extents of this rank's shard
  std::vector<IndexExpr> strides;
  // Per logical axis: names of arguments. `begins`: the start of this rank's shard. `wholes`: the
  // extent of the unsharded tensor. Empty string: ComputedIndex::in_block is false for this axis.
  std::vector<std::string> begins;
  std::vector<std::string> wholes;
};

// The parts of a tile program (codegen/tile/program.h) that do not depend on its layout: arguments,
// tensors, the offsets of their elements, and accumulators.
struct KernelFrame {
  std::string entry;    // name of the entry point
  AxisNumbers extents;  // Space::extents
  AxisNumbers merged;   // Space::merged
  ArgumentLayout args;
  std::vector<Access> accesses;                        // parallel to Space::tensors
  IdVector<CoordinateId, AxisCoordinate> coordinates;  // parallel to Space::coordinates
  std::vector<IndexedAccess> indexed;                  // parallel to Space::indexed
  // Names of arguments, parallel to Space::widths. Empty name: the kernel does not use this width.
  std::vector<std::string> widths;
  IdVector<AccumulatorId, Accumulator> accumulators;  // nodes of kind Result refer to them by id
  std::vector<Coordinate> kept;                       // per kept axis
  std::vector<Coordinate> reduced;                    // per reduced axis
  IndexExpr kept_items;                               // number of items along the kept axes
  IndexExpr reduced_items;                            // number of items along the reduced axes
  IndexExpr lane_extent;                              // elements along the lane axis
  IndexExpr lane_start;                               // coordinate of lane 0 along the lane axis
  IndexExpr chunk;                                    // elements per item; on CUDA: Schedule::lanes
  IndexExpr span;                                     // reduced items per split
  IndexExpr splits;          // Schedule::splits; the variable "split" is the current one
  IndexExpr items_per_tile;  // Cpp only
  IndexExpr reduced_count;   // number of elements that an average combines
  // true: indices are i64. C++ kernels always use i64, CUDA kernels only if some index may not fit
  // in 32 bits.
  bool wide_index = false;
  const Access& access(int tensor) const { return accesses[static_cast<size_t>(tensor)]; }
};

struct FrameRequest {
  std::string entry;
  const Schedule& schedule;
  const Space& space;
  std::vector<const Body*> bodies;  // all bodies of the kernel
  IdVector<AccumulatorId, Accumulator> accumulators;
  int64_t reduced_count = 1;  // number of elements that an average combines
  // true: adds the argument `board`, a pointer to the workspace of divided rows
  // (codegen/tile/divided_rows.h).
  bool board = false;
};

KernelFrame buildFrame(const FrameRequest& request);

}  // namespace heddle::codegen
