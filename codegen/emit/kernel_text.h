#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "codegen/families/shared_launch.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// Types and functions that the emitters share. An emitter writes the text of a kernel from a tile
// program.

// Collects lines and indents them.
class TextWriter {
 public:
  void line(std::string_view text);  // "": writes an empty line
  void open(std::string_view text);  // `text` ends with "{"; the following lines are indented
  void close(std::string_view text = "}");
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  int depth_ = 0;
};

std::string_view storedType(DType dtype);  // C++ type of an element in memory
std::string_view valueType(DType dtype);   // C++ type of a value in a register
// literalText() returns the expression of the constant `value`, rounded to `dtype`. convertText()
// returns an expression that converts the value of the expression `text` from dtype `from` to dtype
// `to`.
std::string literalText(const Scalar& value, DType dtype);
std::string convertText(const std::string& text, DType from, DType to);

// Returns the kernel text of an op (`text`), in which the expressions `a` to `d` of the operands
// replace `{0}` to `{3}`.
std::string applyText(std::string_view text, const std::string& a, const std::string& b = {},
                      const std::string& c = {}, const std::string& d = {});

// The expressions with which a body reads tiles and accumulators, and the expression of the
// current lane. They differ between emitters. Below, `tile` is Node::index of a Load
// (codegen/plan/body.h).
struct LeafText {
  std::function<std::string(int tile)> element;  // element of a tile, in storedType()
  std::function<std::string(AccumulatorId accumulator)> result;  // final state of an accumulator
  std::string lane;                                              // number of the current lane
  // Returns whether all lanes of a tile have the same element. Not set: the lanes may differ.
  std::function<bool(int tile)> is_one_for_lanes;
  // Returns the name of the vector that contains the values of the window `node`
  // (codegen/emit/windows.h), or "" if the node is no window. Not set: there are no windows.
  std::function<std::string(NodeId node)> window;
  // true: for each store that rounds (roundsWhenStored()), writeNodes() also defines the float that
  // the store rounds (exactText()).
  bool rounds_at_stores = false;
};

// Returns the name of the object that a thread keeps for the op of a node (OpDef::state in
// ir/ops/op.h).
std::string stateName(const std::string& prefix, NodeId node);

// Writes the declarations of the objects that a thread keeps for the ops of `body` (OpDef::state).
// Call this before writeNodes(). On CUDA, call it outside of the loop over lanes, so that all lanes
// use the same object. In C++, call it inside of the loop, so that the lanes stay independent.
void writeStates(TextWriter& out, const Body& body, const std::string& prefix);
// Does the same for a CUDA loop that visits its `lanes` lanes in order, starting at lane 0. An
// object may then compute the results of all lanes at once (hd::ForLanes). This requires:
// - `lanes` is a multiple of 4.
// - The last operand of the op grows by 1 per lane.
// - All other operands of the op are equal in all lanes.
void writeLaneStates(TextWriter& out, const Body& body, const std::string& prefix,
                     const KernelFrame& frame, const LeafText& leaves, int lanes);

// Writes the definition of one constant per node of `body`. The name of the constant is `prefix`
// followed by the number of the node. If `wanted` is given, writes only the nodes that it marks.
void writeNodes(TextWriter& out, const Body& body, const KernelFrame& frame, const LeafText& leaves,
                const std::string& prefix, const IdVector<NodeId, bool>* wanted = nullptr);

// These functions return the expression of the index of the current element along an axis. An
// invalid `coordinate` means that the axis has one element. localIndexText() counts from the start
// of this rank's shard, and has the kernel's index type. globalIndexText() counts from the start of
// the unsharded tensor, and has the type i64.
std::string localIndexText(const KernelFrame& frame, CoordinateId coordinate,
                           const std::string& lane);
std::string globalIndexText(const KernelFrame& frame, CoordinateId coordinate,
                            const std::string& lane);

// Returns whether a body reads memory at computed indices (nodes of kind LoadAt).
bool readsMemory(const Body& body);

// Writes the declarations of the locals that node `id` (a Node::Kind::LoadAt) needs. Returns the
// expression of the node's value.
std::string loadAtText(TextWriter& out, const Body& body, NodeId id, const KernelFrame& frame,
                       const LeafText& leaves, const std::string& prefix);

// Returns the expression of the index `computed`, at which a LoadAt reads a tensor along axis
// `axis`.
std::string computedIndexText(const ComputedIndex& computed, const IndexedAccess& access,
                              size_t axis, const KernelFrame& frame, const LeafText& leaves,
                              const std::string& prefix);
// Returns the expression of the value that a LoadAt has outside of the tensor.
std::string outsideText(const Body& body, const Node& node, const std::string& prefix);

// roundsWhenStored() returns whether the elements of a store stay floats until the kernel stores a
// vector of them. The reason: one instruction then rounds two floats to 16 bits each. exactText()
// returns the name of the float that such a store rounds.
bool roundsWhenStored(const Body& body, const Store& store, const KernelFrame& frame);
std::string exactText(const Store& store, const std::string& prefix);

// Returns the expression of a node's value, converted to the stored type of `dtype`.
std::string storedText(const Body& body, NodeId node, DType dtype, const std::string& prefix);

// Returns the tensor from which one of the loads reads tile number `tile`. Requires that there is
// such a load.
int tensorOf(const std::vector<LoadTile>& loads, int tile);
// Returns the tensors that the loads and the stores of a statement access, as indices into
// KernelFrame::accesses, in ascending order.
std::vector<int> tensorsOf(const Body& body, const std::vector<LoadTile>& loads);

// C++: writes a pragma that forbids GCC to unroll the loop over the lanes of `accumulators`. Writes
// nothing if GCC vectorizes the loop without the pragma. GCC unrolls a loop over at most 16 lanes
// before it vectorizes. In an unrolled loop, it still vectorizes operators such as +, but not
// functions such as hd::maximum().
void writeLanePragma(TextWriter& out, const IdVector<AccumulatorId, Accumulator>& accumulators,
                     int32_t lanes);

// Writes declarations of locals for the pointers, sizes and scalars of the argument struct `args`.
void writeArguments(TextWriter& out, const KernelFrame& frame);
// Opens the entry point of a CUDA kernel whose argument struct is `Args_` + entry. The kernel first
// waits for earlier work of its stream, so that it may start early (LaunchStage::starts_early).
// `bounds`: the arguments of __launch_bounds__. `cluster`: the number of blocks of a cluster; 1:
// the kernel has no clusters.
void openCudaEntry(TextWriter& out, const std::string& entry, const std::string& bounds,
                   int32_t cluster = 1);
// Opens the entry point of a C++ kernel, and writes declarations of locals for its arguments.
void openCppEntry(TextWriter& out, const KernelFrame& frame);
// Returns the expression of the element in lane `i` of a tensor. The pointer p<tensor> points to
// lane 0.
std::string cppElement(const KernelFrame& frame, int tensor);
// Writes declarations of locals for `coordinates`.
void writeCoordinates(TextWriter& out, const std::vector<Coordinate>& coordinates);

// These functions return the text of the entry point and of its argument struct. In a kernel
// source, the runtime header must precede this text (codegen/compile/runtime_text.h).
std::string emitCuda(const TileProgram& program);
std::string emitCpp(const TileProgram& program);
std::string emitItemsCuda(const TileProgram& program);    // emitCuda() of a program with items
std::string emitItemsCpp(const TileProgram& program);     // emitCpp() of a program with items
std::string emitSquaresCuda(const TileProgram& program);  // emitCuda() of a program with squares
std::string emitSquaresCpp(const TileProgram& program);   // emitCpp() of a program with squares
std::string emitBundlesCpp(const TileProgram& program);   // emitCpp() of a program with bundles

// Returns the text of the entry point of a CUDA kernel that computes both halves of a reduction
// (codegen/families/loops.h): `first` stores partial results, and `second` combines them. The
// functions of both halves (emitCudaHalf()) must precede this text. The argument struct of `entry`
// consists of the structs of both halves and the pointer to the counters (LaunchStage::kCounters).
std::string emitCudaRanges(const std::string& entry, const TileProgram& first,
                           const TileProgram& second);
// Returns the text of one half as a function: `void entry(args)`, or `void entry(args, scratch)`
// if LoopCombiner::usesScratch() (codegen/emit/tiles/emit_loop_combine.h) returns true.
std::string emitCudaHalf(const TileProgram& program);

// Returns the text of a pointwise program of items as a function that the kernel of a CUDA shared
// launch calls: `void entry(args, block, blocks)`. The kernel of a C++ shared launch calls the
// function of emitCpp().
std::string emitCudaPart(const TileProgram& program);
// These functions return the text of the kernel of a shared launch. The kernel calls the functions
// of its parts, whose text must precede this text.
std::string emitSharedCuda(const SharedKernel& kernel);
std::string emitSharedCpp(const SharedKernel& kernel);

}  // namespace heddle::codegen
