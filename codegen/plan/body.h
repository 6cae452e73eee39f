#pragma once

#include <string_view>
#include <vector>

#include "codegen/plan/analysis.h"
#include "codegen/plan/space.h"

namespace heddle::codegen {

// The place along one logical axis of a tensor read at computed places.
struct PlaceAlong {
  int node = -1;          // its value, an i64 node of the same body; -1: none
  int coordinate = -1;    // else the index along this coordinate of the space; -1: 0
  bool local = false;     // the index within the rank's block
  bool reversed = false;  // extent - 1 - index
  int64_t shift = 0;      // taken off the index
  bool checked = false;   // may lie outside
  bool in_block = false;  // of a tensor that has only a block here: elsewhere there is 0
};

// One value of a kernel body, held in a type that holds its dtype (valueType()): a bf16 as a float
// that bf16 can hold, an i8 as an i64 in its range.
struct Node {
  enum class Kind : uint8_t {
    Load,        // element of tensor `index` of the space
    Scalar,      // run-time scalar: input `index` of the segment
    Literal,     // `literal`
    Apply,       // `text` over `operands`, each converted to `compute`, rounded to `dtype`
    Result,      // accumulator `index` when all of it is combined
    Coordinate,  // unsharded index of the element along coordinate `index` of the space; -1: 0
    LoadAt,  // element of indexed tensor `index` at `places`; outside: operand 0, else `literal`
  };
  Kind kind = Kind::Literal;
  DType dtype = DType::F32;
  int index = 0;
  Scalar literal = 0.0;
  std::string_view text;
  DType compute = DType::F32;
  int conditions = 0;              // so many leading operands are bools and not converted
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

// `space` names the tensors of the segment in order: its tensor inputs, then its outputs.
Computation makeComputation(const Fusion& segment, const Analysis& analysis, const Space& space);

}  // namespace heddle::codegen
