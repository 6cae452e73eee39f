#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "codegen/plan/analysis.h"
#include "codegen/plan/space.h"

namespace heddle::codegen {

using NodeId = Id<struct NodeTag>;                // index into Body::nodes
using AccumulatorId = Id<struct AccumulatorTag>;  // index into Computation::accumulators

// How a kernel computes the index along one logical axis of a tensor, if it reads this tensor at
// computed indices (Node::Kind::LoadAt).
struct ComputedIndex {
  // The i64 node whose value is the index. Invalid: the index is computed from the next five
  // members.
  NodeId node;
  // Used if `node` is invalid. If both are invalid, the coordinate is 0.
  CoordinateId coordinate;
  bool local = false;     // true: the coordinate counts from the start of this
                          // rank's shard; false: from the start of the unsharded tensor
  bool reversed = false;  // the index is `extent - 1 - coordinate`
  int64_t shift = 0;      // subtracted from the coordinate; unused if `local` or `reversed` is true
  // Index into Space::widths of a number that replaces `shift`, because it is known only at run
  // time. -1: `shift` is used.
  int width = -1;
  bool checked = false;  // the index may be outside of the tensor, so the kernel checks it
  // true: the axis may be sharded. An element of another shard then reads as -0.0 (integers: 0). A
  // later collective adds the results of all ranks, and these values do not change the sum.
  bool in_block = false;
};

// One value of a kernel body. In the kernel text it has the type valueType()
// (codegen/emit/kernel_text.h), which can be larger than its dtype. For example, a bf16 value is a
// float that bf16 can represent, and an i8 value is an i64 in the range of i8.
struct Node {
  enum class Kind : uint8_t {
    Load,     // element of Space::tensors[index]; in a tile program, of the tile `index`
    Scalar,   // run-time scalar: input `index` of the segment
    Literal,  // `literal`
    // `text` applied to `operands`, which replace {0}, {1}, ... in `text`. The operands are first
    // converted to `compute`. The result is rounded to `dtype`.
    Apply,
    // Final value of accumulator `index`. If a reduction subtracts a center
    // (JointReductions::center), the center is operand 0 of the node.
    Result,
    // Index of the current element in the unsharded tensor, along the axis
    // Space::coordinates[index]. If `index` is -1, the value of the node is 0.
    Coordinate,
    // Element of the tensor Space::indexed[index] at `computed_indices`. If an index is outside
    // of the tensor, the node has the value of operand 0, or `literal` if there are no operands.
    LoadAt,
  };
  Kind kind = Kind::Literal;
  DType dtype = DType::F32;
  int index = 0;
  Scalar literal = 0.0;
  std::string_view text;
  // Apply: the type of the object that a thread keeps for the op (OpDef::state); may be empty.
  std::string_view state;
  DType compute = DType::F32;
  int conditions = 0;                           // the first `conditions` operands stay bools
  std::vector<NodeId> operands;                 // earlier nodes of the same body
  std::vector<ComputedIndex> computed_indices;  // LoadAt: per logical axis
};

struct Store {
  NodeId node;
  int tensor = 0;  // index into Space::tensors
};

// Straight-line code for one element of the space.
struct Body {
  IdVector<NodeId, Node> nodes;
  std::vector<Store> stores;
};

// Returns a rough number of simple operations in the code of a body. A call such as exp counts as
// several operations.
int64_t opsOf(const Body& body);

// Describes one running result of a reduction. The *state* of an accumulator consists of the
// variables into which the kernel combines the elements. If two reductions are joint
// (codegen/plan/joint.h), the accumulator of the first one has the state, and the accumulator of
// the second one refers to the first accumulator.
struct Accumulator {
  std::string_view text;              // expression that combines accumulator {0} and element {1}
  DType type = DType::F32;            // F32, F64 or I64
  Scalar identity;                    // start value
  NodeId element;                     // the node of the loop body whose value is combined
  DType dtype = DType::F32;           // dtype of the finished value
  bool average = false;               // the finished value is divided by the number of elements
  JointKind joint = JointKind::None;  // kind of the pair to which the reduction belongs
  AccumulatorId first;  // set for the second reduction of a pair: the accumulator with the state
  // true: the kernel combines states that it or an earlier launch has stored (partial results), not
  // single values. The node `element` is the first member of such a state. The nodes directly after
  // it are the other members.
  bool adds_states = false;

  bool hasState() const { return !first.valid(); }
};

// Returns the ids of the accumulators that have a state.
std::vector<AccumulatorId> withState(const IdVector<AccumulatorId, Accumulator>& accumulators);
// Returns the types of the members of an accumulator's state. A joint accumulator has several
// members.
std::vector<DType> memberTypes(const Accumulator& accumulator);

// The computation of one kernel. The loop body runs for every element of the space. It computes the
// elements that the accumulators combine, and the outputs with an element per element of the space.
// After the loop, the finish body runs for every index along the kept axes (codegen/plan/space.h).
// Without reductions there is only the loop body.
struct Computation {
  Body loop;
  IdVector<AccumulatorId, Accumulator> accumulators;
  Body finish;
};

// A *leaf* of a body is a value that the body reads and does not compute: an input of the segment,
// the result of a reduction, or the value of a tile (codegen/tile/program.h). `node` reads the
// value. The body computes the values `operands` and passes them to the node.
struct Leaf {
  Leaf(Node given, std::vector<ValueId> values = {})  // NOLINT(google-explicit-constructor)
      : node(std::move(given)), operands(std::move(values)) {}
  Node node;
  std::vector<ValueId> operands;
};
// Returns the leaf of a value, or nullopt if the body computes the value.
using LeafNode = std::function<std::optional<Leaf>(ValueId)>;

struct WrittenBody {
  Body body;                          // without stores
  IdVector<ValueId, NodeId> node_of;  // per value of the segment: its node; invalid: it has none
};

// Writes a body that computes the values `wanted` from leaves. `leaf` must return a leaf for each
// input of the segment that the body reads, except inputs that it reads only at computed indices.
WrittenBody writeBody(const Fusion& segment, const Analysis& analysis, const Space& space,
                      const std::vector<ValueId>& wanted, const LeafNode& leaf);

// Returns the accumulator of a reduction. The caller sets Accumulator::element.
Accumulator makeAccumulator(const Fusion& segment, const Analysis& analysis, ExprId reduction);

// Returns, per operand of the segment (its inputs, then its outputs), the index of its tensor in
// Space::tensors. -1: the operand is a scalar, or the kernel reads it at computed indices only.
std::vector<int> tensorsOfOperands(const Fusion& segment, const Space& space);

// inputNode() returns the node of an input of the segment, and resultNode() returns the leaf of the
// result of a reduction. Both return nullopt for every other value. accumulatorOf() returns the id
// of the accumulator of a reduction, or an invalid id.
std::optional<Node> inputNode(const Fusion& segment, const std::vector<int>& tensor_of,
                              ValueId value);
std::optional<Leaf> resultNode(const Fusion& segment, const Analysis& analysis, ValueId value);
AccumulatorId accumulatorOf(const Analysis& analysis, ExprId reduction);

// Creates the computation of `segment`. Space::tensors must contain all outputs of the segment, and
// all its tensor inputs except those that it reads only at computed indices.
Computation makeComputation(const Fusion& segment, const Analysis& analysis, const Space& space);

}  // namespace heddle::codegen
