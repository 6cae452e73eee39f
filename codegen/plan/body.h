#pragma once

#include <string_view>
#include <vector>

#include "codegen/plan/analysis.h"
#include "codegen/plan/space.h"

namespace heddle::codegen {

// The index along one logical axis of a tensor that is read at computed indices.
struct PlaceAlong {
  int node = -1;          // an i64 node of the same body that holds the index; -1: none
  int coordinate = -1;    // without a node: a coordinate of the space; -1: index 0
  bool local = false;     // the coordinate counts within the rank's block
  bool reversed = false;  // extent - 1 - index
  int64_t shift = 0;      // subtracted from the index
  bool checked = false;   // the index may be outside of the tensor
  bool in_block = false;  // the rank holds only a block; elements of other blocks read -0.0 or 0
};

// One value of a kernel body. Its C++ or CUDA type can represent every value of its dtype
// (valueType()): a bf16 is a float that bf16 can represent, an i8 is an i64 in the range of i8.
struct Node {
  enum class Kind : uint8_t {
    Load,        // element of tensor `index` of the space
    Scalar,      // run-time scalar: input `index` of the segment
    Literal,     // `literal`
    Apply,       // `text` over `operands`, each converted to `compute`, rounded to `dtype`
    Result,      // final value of accumulator `index`
    Coordinate,  // unsharded index of the element along coordinate `index` of the space; -1: 0
    LoadAt,  // element of indexed tensor `index` at `places`. Outside of the tensor: operand 0 if
             // there is one, else `literal`
  };
  Kind kind = Kind::Literal;
  DType dtype = DType::F32;
  int index = 0;
  Scalar literal = 0.0;
  std::string_view text;
  DType compute = DType::F32;
  int conditions = 0;              // number of leading operands that are bools and not converted
  std::vector<int> operands;       // earlier nodes of the same body
  std::vector<PlaceAlong> places;  // LoadAt: per logical axis
};

struct Store {
  int node = 0;
  int tensor = 0;  // of the space
};

// Straight-line code for one element of the space.
struct Body {
  std::vector<Node> nodes;
  std::vector<Store> stores;
};

struct Accumulator {
  std::string_view text;    // combines accumulator {0} and element {1}
  DType type = DType::F32;  // F32, F64 or I64
  Scalar identity;
  int element = 0;           // node of the loop body
  DType dtype = DType::F32;  // of the finished value
  bool average = false;      // divide by the number of elements
};

// What one kernel computes: a loop body over the whole space, which feeds the accumulators, and a
// finish body over the kept axes. Without reductions there is only the loop body.
struct Computation {
  Body loop;
  std::vector<Accumulator> accumulators;
  Body finish;
};

// `space` lists the tensors of the segment in order: its tensor inputs, then its outputs.
Computation makeComputation(const Fusion& segment, const Analysis& analysis, const Space& space);

}  // namespace heddle::codegen
