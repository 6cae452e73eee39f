#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "codegen/frame/argument_value.h"
#include "codegen/kernel.h"
#include "codegen/tile/program.h"

namespace heddle::codegen {

// A kernel that several independent *parts* of a segment share (ir/segment/join_independent.h). A
// *body* is a function that computes parts. The argument struct of the kernel has these fields,
// each aligned to 8 bytes:
//   parts   an i64: the number of parts of the launch
//   begin   an i64 per body: the index of the first part that the body computes
//   offset  an i64 per body: the byte of `table` at which the arguments of these parts begin
//   first   an i32 per part: its first block (Cpp: tile); then an i32: the number of all blocks
//   table   the argument struct of each part
// The parts are sorted by body. A block searches `first` to find the part that it computes.
struct SharedKernel {
  std::string entry;                // name of the entry point
  std::vector<std::string> bodies;  // names of the functions
  size_t most_parts = 0;            // length of `first`, with the number of all blocks and padding
  size_t table_bytes = 0;           // size of `table`, with padding
  size_t bytes = 0;                 // size of the argument struct
  int32_t block = 1;
};

// Creates the launches for parts whose programs are pointwise (codegen/families/loops.h). Parts
// with the same text share one body. The kernel text contains each body once, so it does not grow
// with the number of parts. The sizes of the parts are arguments and do not appear in the text.
class SharedLaunches {
 public:
  // The names of all kernels and bodies begin with `entry`.
  SharedLaunches(Target target, std::string entry) : target_(target), entry_(std::move(entry)) {}

  // The largest argument struct of a CUDA kernel, in bytes (since CUDA 12.1). finish() creates
  // several launches if the argument struct of a CUDA kernel would be larger than this limit. On
  // both targets, it also does so for more than kMostBodies bodies.
  static constexpr size_t kMostArgumentBytes = 32764;
  static constexpr size_t kMostBodies = 8;

  // Returns a placeholder name. The text passed to add() must use it as the name of its function.
  // finish() replaces it by a different name for each body.
  std::string bodyName() const { return entry_ + "_body_"; }

  // Adds a part. `text` is the function that computes the part. Operand i of the program is operand
  // operands[i] of the segment. `schedule` is the description of the part for users. `entry`
  // becomes StageLayout::Struct::entry of the part.
  void add(TileProgram program, std::string text, std::string schedule,
           const std::vector<int>& operands, int32_t entry);

  struct Result {
    std::string bodies;                 // the texts of all bodies, each once
    std::vector<SharedKernel> kernels;  // they call the bodies
    std::vector<LaunchStage> stages;    // one per launch; several may launch the same kernel
    std::vector<StageLayout> layouts;   // per stage
    std::string description;            // describes the launches for users
  };
  Result finish() const;

 private:
  struct Body {
    std::string text;
    std::string schedule;                      // schedule of the body's first part
    std::vector<LaunchStage> parts;            // pointers and scalars name operands of the segment
    std::vector<StageLayout::Struct> structs;  // argument structs of the parts
  };
  // The parts begin .. end - 1 of a body (indices into Body::parts).
  struct Range {
    size_t body;  // index into bodies_
    size_t begin;
    size_t end;
  };
  using Launch = std::vector<Range>;
  // A kernel and all its launches. Launches with the same bodies have the same kernel.
  struct Kind {
    std::vector<size_t> bodies;
    std::vector<Launch> launches;
    SharedKernel kernel;
  };

  std::vector<Launch> divide() const;
  std::vector<Kind> kindsOf(const std::vector<Launch>& launches) const;
  LaunchStage stageOfLaunch(const SharedKernel& kernel, const Launch& launch,
                            StageLayout& layout) const;
  std::string describeLaunch(const Launch& launch) const;

  const Target target_;
  const std::string entry_;
  std::vector<Body> bodies_;
};

}  // namespace heddle::codegen
