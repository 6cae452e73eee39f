#pragma once

#include <cstdint>
#include <vector>

#include "codegen/plan/schedule.h"
#include "codegen/plan/space.h"

namespace heddle::codegen {

// What an argument of a kernel contains. codegen/plan/schedule.h explains lanes, items, tiles and
// splits. If two kernels of a segment have the same form (docs/kernels.md), their arguments differ
// only in the numbers that valueOf() returns.
struct ArgumentValue {
  enum class Kind : uint8_t {
    Late,           // a pointer or scalar, which a run writes; 0 until then
    Other,          // a number that valueOf() cannot compute
    KeptItems,      // items along the kept axes
    ReducedItems,   // items along the reduced axes
    LaneExtent,     // elements along the lane axis
    Chunk,          // elements of an item along the lane axis
    ItemsPerTile,   // items of a tile
    ReducedCount,   // elements that an average combines
    Splits,         // ranges of reduced items (Schedule::splits)
    Span,           // reduced items per split
    AxisItems,      // items along `axis`
    AxisInverse,    // the factor and the shift with which a kernel divides by AxisItems
    Stride,         // stride of tensor `index` along `axis`
    Base,           // SpaceTensor::base of tensor `index`
    PartStride,     // SpaceTensor::part_stride of tensor `index`
    VectorBegins,   // offsets of tensor `index` at which a vector may begin (Access::vector_begins)
    Offset,         // SpaceCoordinate::offset of coordinate `index`
    IndexedExtent,  // Space::indexed[index].extents[axis]
    IndexedStride,  // Space::indexed[index].strides[axis]
    IndexedOffset,  // Space::indexed[index].offsets[axis]
    IndexedGlobal,  // Space::indexed[index].global[axis]
    AxisExtent,     // extent of the space along `axis`
    Squares,        // number of squares
    Width,          // Space::widths[index]
    Streams,        // Cpp: 1 if stores of outputs should bypass the caches, otherwise 0
  };
  Kind kind = Kind::Late;
  int32_t index = 0;
  int32_t axis = 0;
  bool operator==(const ArgumentValue&) const = default;
};

// The numbers on which the arguments of one entry point depend.
struct FrameNumbers {
  const Space& space;
  const Schedule& schedule;
  int64_t reduced_count;  // number of elements that an average combines
  int64_t squares = 0;    // number of squares (codegen/tile/program.h); 0: no program of squares
};

// What the arguments of one launch (LaunchStage::args) contain. If two kernels of a segment have
// the same form (docs/kernels.md), they have equal layouts. Only the numbers in their arguments
// differ.
struct StageLayout {
  // The argument struct of one *entry*: of an entry point, of one part of a shared launch
  // (`first`), or of one half of a CUDA reduction in ranges (codegen/families/loops.h). The
  // entries of all launches of a kernel are numbered together.
  struct Struct {
    int32_t entry = 0;   // number of the entry
    int32_t offset = 0;  // bytes, into LaunchStage::args
    std::vector<ArgumentValue> values;
  };
  std::vector<Struct> structs;
  // A *shared* launch computes several independent parts of a segment
  // (codegen/families/shared_launch.h). For a shared launch, this is the offset in bytes of the
  // field `first` of its argument struct (SharedKernel). The numbers in this field follow from the
  // grids of the parts. -1: the launch is not shared. It then has one struct, or two
  // structs for the halves of a reduction. The first half decides the grid.
  int32_t first = -1;
  // A *temporary* is a value that one launch stores in the workspace for later launches. Per
  // element of LaunchStage::pointers: the number of the temporary to which the pointer points, or
  // -1 if it points to something else. Empty: no pointer points to a temporary.
  std::vector<int32_t> temporaries = {};
};

// Returns the value of an argument. Requires a kind other than Other.
int64_t valueOf(const ArgumentValue& argument, const FrameNumbers& numbers);

// Returns a factor (lower 32 bits) and a shift (upper 32 bits). With these, hd::Divisor
// (codegen/runtime/cuda_runtime.h) divides by `divisor` without a division instruction. Returns 0
// if `divisor` is 0, or is 2^31 or larger.
int64_t inverseOf(int64_t divisor);

// The text of a kernel depends on the results of the two functions below.

// Returns whether every vector of Schedule::lanes elements begins at an aligned address. For CUDA,
// these vectors are the items. The address must be a multiple of the size of the vector, or of 16
// bytes if the vector is larger.
bool hasAlignedItems(const SpaceTensor& tensor, const FrameNumbers& numbers);
// Returns whether some index may not fit in 32 bits.
bool needsWideIndex(const FrameNumbers& numbers);

}  // namespace heddle::codegen
