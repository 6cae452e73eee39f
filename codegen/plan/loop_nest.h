#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "codegen/kernel.h"
#include "codegen/plan/body.h"
#include "codegen/plan/index_expr.h"
#include "codegen/plan/schedule.h"

namespace heddle::codegen {

// The argument block of one entry point. This class decides the layout; the kernel text declares
// the same struct and asserts its size. Every field takes 8 bytes: a pointer, an i64, an f64 or a
// bool.
class ArgumentLayout {
 public:
  struct Field {
    std::string name;
    std::string type;  // in the kernel language
    int32_t offset = 0;
    bool index = false;  // the kernel copies it to a local of its index type
  };
  void addPointer(const std::string& name, int32_t operand);
  IndexExpr addSize(const std::string& name, int64_t value);  // returns its parameter
  void addOffset(const std::string& name, int64_t value);     // always an i64
  // The kernel receives a bool as bool, every integer as i64 and every float as f64.
  void addScalar(const std::string& name, int32_t operand, DType dtype);

  const std::vector<Field>& fields() const { return fields_; }
  std::string structText(const std::string& name) const;
  void moveInto(LaunchStage& stage);

 private:
  void addField(const std::string& name, const std::string& type, int64_t value,
                bool index = false);
  std::vector<Field> fields_;
  std::vector<std::byte> bytes_;
  std::vector<LaunchStage::PointerPatch> pointers_;
  std::vector<LaunchStage::ScalarPatch> scalars_;
};

// Stride of an access between neighbouring lanes.
enum class LaneStride : uint8_t { Zero, One, Any };

// One tensor as the loops access it. The element of lane i is at kept_offset + reduced_offset + i *
// lane_stride.
struct Access {
  std::string name;  // also the name of the field with its pointer
  DType dtype = DType::F32;
  bool output = false;
  IndexExpr kept_offset;     // from the coordinates of kept axes
  IndexExpr reduced_offset;  // from the coordinates of reduced axes
  LaneStride lane = LaneStride::Zero;
  IndexExpr lane_stride;
  // Every item starts at a multiple of the lane count, in elements from the pointer. If the pointer
  // is aligned, all items are aligned.
  bool aligned_items = false;
};

// A coordinate of the space, computed from the item number (variable "kept" or "reduced").
struct Coordinate {
  std::string name;
  IndexExpr value;
};

// The index along one axis of the space, for bodies that use it. It is the sum of the coordinate
// `axis`, the lane (if `lanes`) and the field `offset`.
struct AxisCoordinate {
  std::string axis;    // name of the coordinate; empty: the axis has one element
  bool lanes = false;  // lanes run along this axis
  std::string offset;  // the field with the block's start; empty: no body uses it
};

// A tensor that is read at computed indices, with extents and strides per logical axis.
struct IndexedAccess {
  std::string name;  // also the name of the field with its pointer
  DType dtype = DType::F32;
  std::vector<IndexExpr> extents;
  std::vector<IndexExpr> strides;
  // The fields with the block's start and with the unsharded extent, per axis that is looked up in
  // blocks; empty for other axes.
  std::vector<std::string> begins;
  std::vector<std::string> wholes;
};

// One kernel over one space; both emitters use the same data. The phases of a kernel are, in order:
// 1. start the accumulators at their identities
// 2. the loop body over the reduced items
// 3. combine the accumulators of lanes and threads
// 4. the finish body, or a store of the accumulators if `partials` is not empty
struct LoopNest {
  std::string entry;
  Schedule schedule;
  Computation computation;
  ArgumentLayout args;
  std::vector<Access> accesses;             // in the order of Space::tensors
  std::vector<AxisCoordinate> coordinates;  // in the order of Space::coordinates
  std::vector<IndexedAccess> indexed;       // in the order of Space::indexed
  std::vector<Coordinate> kept;
  std::vector<Coordinate> reduced;  // empty: no reduction
  IndexExpr kept_items;
  IndexExpr reduced_items;
  IndexExpr lane_extent;      // elements along the lane axis
  IndexExpr lane_start;       // coordinate of lane 0 along the lane axis
  IndexExpr chunk;            // elements per item; the constant `lanes` on CUDA
  IndexExpr span;             // reduced items per split
  IndexExpr splits;           // the variable "split" runs over them
  IndexExpr items_per_tile;   // Cpp
  IndexExpr reduced_count;    // elements combined in one finished value, for averages
  std::vector<int> partials;  // accesses that store the accumulators; empty: run the finish body
  bool wide_index = false;    // an index does not fit in 32 bits
  const Access& access(int tensor) const { return accesses[static_cast<size_t>(tensor)]; }
};

struct NestRequest {
  std::string entry;
  Schedule schedule;
  Space space;  // ends with workspace tensors if `partials` names any
  Computation computation;
  std::vector<int> partials;
  int64_t reduced_count = 1;
};

LoopNest buildLoopNest(const NestRequest& request);

}  // namespace heddle::codegen
