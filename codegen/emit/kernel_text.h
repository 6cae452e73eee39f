#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "codegen/plan/loop_nest.h"

namespace heddle::codegen {

// The part of the kernel language that both targets share: values, ops, conversions.

// Lines with indentation.
class TextWriter {
 public:
  void line(std::string_view text);  // "" is an empty line
  void open(std::string_view text);  // text ending in "{": indents what follows
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

// `{0}`, `{1}`, ... of an op's text replaced.
std::string applyText(std::string_view text, const std::string& a, const std::string& b = {},
                      const std::string& c = {}, const std::string& d = {});

// Where the text of leaves comes from.
struct LeafText {
  std::function<std::string(int tensor)> element;  // of the stored type
  std::function<std::string(int accumulator)> result;
  std::string lane;  // the current lane
};

// Declares the nodes of `body` as constants named prefix0, prefix1, ...
void writeNodes(TextWriter& out, const Body& body, const LoopNest& nest, const LeafText& leaves,
                const std::string& prefix);

// The index of the element along a coordinate of the space (-1: an axis of one element): within the
// rank's block, of the kernel's index type, or that of the unsharded tensor, an i64.
std::string localIndexText(const LoopNest& nest, int coordinate, const std::string& lane);
std::string globalIndexText(const LoopNest& nest, int coordinate, const std::string& lane);

// Declares what node `i`, a LoadAt, needs and returns its value.
std::string loadAtText(TextWriter& out, const Body& body, size_t i, const LoopNest& nest,
                       const LeafText& leaves, const std::string& prefix);

// The value of a node as the stored type of `dtype`.
std::string storedText(const Body& body, int node, DType dtype, const std::string& prefix);

// Tensors that a body reads or writes, ascending.
std::vector<int> tensorsOf(const Body& body);

// Accumulator `a` combined with `element` (of the accumulator's type).
std::string combineText(const Accumulator& a, const std::string& into, const std::string& element);
// Node `a.element` of the loop body as the accumulator's type.
std::string elementText(const LoopNest& nest, const Accumulator& a, const std::string& prefix);

// Declares pointers, sizes and scalars of the argument struct `args` as locals.
void writeArguments(TextWriter& out, const LoopNest& nest);
void writeCoordinates(TextWriter& out, const std::vector<Coordinate>& coordinates);

// The text of the entry point with its argument struct; the runtime header goes before it.
std::string emitCuda(const LoopNest& nest);
std::string emitCpp(const LoopNest& nest);

}  // namespace heddle::codegen
