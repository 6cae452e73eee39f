#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "codegen/plan/loop_nest.h"

namespace heddle::codegen {

// The part of the kernel language that both targets share: values, ops, conversions.

// Collects lines and indents them.
class TextWriter {
 public:
  void line(std::string_view text);  // "" is an empty line
  void open(std::string_view text);  // text that ends with "{"; indents the following lines
  void close(std::string_view text = "}");
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  int depth_ = 0;
};

std::string_view storedType(DType dtype);  // an element in memory
std::string_view valueType(DType dtype);   // a value in a register, of computeType()
std::string literalText(const Scalar& value, DType dtype);
std::string convertText(const std::string& text, DType from, DType to);

// Replaces `{0}`, `{1}`, ... in the text of an op by the operands.
std::string applyText(std::string_view text, const std::string& a, const std::string& b = {},
                      const std::string& c = {}, const std::string& d = {});

// Supplies the text of the leaves of a body.
struct LeafText {
  std::function<std::string(int tensor)> element;  // of the stored type
  std::function<std::string(int accumulator)> result;
  std::string lane;  // expression for the current lane
};

// Declares the nodes of `body` as constants named prefix0, prefix1, ...
void writeNodes(TextWriter& out, const Body& body, const LoopNest& nest, const LeafText& leaves,
                const std::string& prefix);

// Return the index of the element along a coordinate of the space (-1: an axis of one element). The
// local index counts within the rank's block and has the kernel's index type. The global index
// counts in the unsharded tensor and is an i64.
std::string localIndexText(const LoopNest& nest, int coordinate, const std::string& lane);
std::string globalIndexText(const LoopNest& nest, int coordinate, const std::string& lane);

// Declares the locals that node `i`, a LoadAt, needs. Returns the expression of its value.
std::string loadAtText(TextWriter& out, const Body& body, size_t i, const LoopNest& nest,
                       const LeafText& leaves, const std::string& prefix);

// Returns the value of a node, converted to the stored type of `dtype`.
std::string storedText(const Body& body, int node, DType dtype, const std::string& prefix);

// Returns the tensors that a body reads or writes, in ascending order.
std::vector<int> tensorsOf(const Body& body);

// Returns the expression that combines `into` with `element`, which has the accumulator's type.
std::string combineText(const Accumulator& a, const std::string& into, const std::string& element);
// Returns node `a.element` of the loop body, converted to the accumulator's type.
std::string elementText(const LoopNest& nest, const Accumulator& a, const std::string& prefix);

// Declares the pointers, sizes and scalars of the argument struct `args` as locals.
void writeArguments(TextWriter& out, const LoopNest& nest);
void writeCoordinates(TextWriter& out, const std::vector<Coordinate>& coordinates);

// Return the text of the entry point with its argument struct. The runtime header must precede it.
std::string emitCuda(const LoopNest& nest);
std::string emitCpp(const LoopNest& nest);

}  // namespace heddle::codegen
