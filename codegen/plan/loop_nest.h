#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "codegen/kernel.h"
#include "codegen/plan/body.h"
#include "codegen/plan/index_expr.h"
#include "codegen/plan/schedule.h"

namespace heddle::codegen {

// The argument block of one entry point. The plan owns the layout; the text repeats it as a struct
// and asserts its size. Every field takes 8 bytes: a pointer, an i64, an f64 or a bool.
class ArgumentLayout {
 public:
  struct Field {
    std::string name;
    std::string type;  // in the kernel language
    int32_t offset = 0;
    bool index = false;  // a local of the kernel's index type
  };
  void addPointer(const std::string& name, int32_t operand);
  IndexExpr addSize(const std::string& name, int64_t value);  // its parameter
  void addOffset(const std::string& name, int64_t value);     // an i64 whatever the index type
  // The kernel gets bool, (every integer type) i64 or (every float type) f64.
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

// How an access moves from lane to lane.
enum class LaneStride : uint8_t { Zero, One, Any };

// One tensor in the loops. Element of lane i: kept_offset + reduced_offset + i * lane stride.
struct Access {
  std::string name;  // also the field with its pointer
  DType dtype = DType::F32;
  bool output = false;
  IndexExpr kept_offset;     // over the coordinates of kept axes
  IndexExpr reduced_offset;  // over the coordinates of reduced axes
  LaneStride lane = LaneStride::Zero;
  IndexExpr lane_stride;
  // Every item starts at a multiple of the lane count from the pointer: if the pointer is aligned,
  // all items are.
  bool aligned_items = false;
};

// A coordinate of the space, computed from the item number (variable "kept" or "reduced").
struct Coordinate {
  std::string name;
  IndexExpr value;
};

// A coordinate of the space that bodies ask for: `axis` + the lane where `lanes` + `offset`.
struct AxisCoordinate {
  std::string axis;    // name of the coordinate; empty: the axis has one element
  bool lanes = false;  // lanes lie along it
  std::string offset;  // the field with the block's start; empty: no body asks for it
};

// A tensor read at computed places: extents and strides per logical axis.
struct IndexedAccess {
  std::string name;  // also the field with its pointer
  DType dtype = DType::F32;
  std::vector<IndexExpr> extents;
  std::vector<IndexExpr> strides;
  // Per axis that is looked up in blocks, else empty: the fields with the block's start and the
  // unsharded extent.
  std::vector<std::string> begins;
  std::vector<std::string> wholes;
};

// One kernel over one space, the same data for both emitters. The phases in order: start the
// accumulators at their identities; the loop body over the reduced items; combine the accumulators
// of lanes and threads; then the finish body, or, when `partial`, a store of the accumulators.
struct LoopNest {
  std::string entry;
  Schedule schedule;
  Computation computation;
  ArgumentLayout args;
  std::vector<Access> accesses;             // as the tensors of the space
  std::vector<AxisCoordinate> coordinates;  // as those of the space
  std::vector<IndexedAccess> indexed;       // as those of the space
  std::vector<Coordinate> kept;
  std::vector<Coordinate> reduced;  // empty: no reduction
  IndexExpr kept_items;
  IndexExpr reduced_items;
  IndexExpr lane_extent;      // elements along the lane axis
  IndexExpr lane_start;       // the coordinate along it of lane 0
  IndexExpr chunk;            // elements of an item; the constant `lanes` on CUDA
  IndexExpr span;             // reduced items in each of the splits
  IndexExpr splits;           // variable "split" runs over them
  IndexExpr items_per_tile;   // Cpp
  IndexExpr reduced_count;    // elements that one finished value combines, for averages
  std::vector<int> partials;  // accesses that take the accumulators; empty: finish instead
  bool wide_index = false;    // some index does not fit 32 bits
};

struct NestRequest {
  std::string entry;
  Schedule schedule;
  Space space;  // with workspace tensors at the end, as `partials` says
  Computation computation;
  std::vector<int> partials;
  int64_t reduced_count = 1;
};

LoopNest buildLoopNest(const NestRequest& request);

}  // namespace heddle::codegen
