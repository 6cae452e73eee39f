#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "codegen/kernel.h"
#include "codegen/plan/argument_value.h"
#include "codegen/plan/loop_nest.h"

namespace heddle::codegen {

// A kernel that several independent parts of a segment share (ir/segment/join_independent.h). Its
// argument struct has these fields, each aligned to 8 bytes:
//   parts          an i64: the number of parts of the launch
//   begin, offset  an i64 per body: its first part, and where its arguments begin in the table
//   first          an i32 per part: its first block (Cpp: tile); then the number of all blocks
//   table          the argument struct of each part
// The parts are sorted by body. A block finds its part by a search in `first`.
struct SharedKernel {
  std::string entry;
  std::vector<std::string> bodies;  // the functions that compute parts
  size_t most_parts = 0;            // length of `first`
  size_t table_bytes = 0;
  size_t bytes = 0;  // size of the argument struct
  int32_t block = 1;
};

// Creates the launches for parts that are pointwise loop nests. Parts with the same text share one
// *body*, which is a function that the kernel calls. The text therefore does not grow with the
// number of parts, and does not depend on their sizes.
class SharedLaunches {
 public:
  // All names in the text begin with `entry`.
  SharedLaunches(Target target, std::string entry) : target_(target), entry_(std::move(entry)) {}

  // The largest argument struct of a CUDA kernel, in bytes (since CUDA 12.1). If the table of all
  // parts is larger, or if there are more than kMostBodies bodies, there are several launches.
  static constexpr size_t kMostArgumentBytes = 32764;
  static constexpr size_t kMostBodies = 8;

  // Returns the name that the function in the text of each part must have.
  std::string bodyName() const { return entry_ + "_body_"; }

  // Adds a part. `text` is the function that computes the part. Operand i of the nest is operand
  // operands[i] of the segment. `schedule` describes the part, and `entry` is its number for
  // StageLayout::Struct::entry.
  void add(LoopNest nest, std::string text, std::string schedule, const std::vector<int>& operands,
           int32_t entry);

  struct Result {
    std::string bodies;                 // the texts of all bodies, each once
    std::vector<SharedKernel> kernels;  // they call the bodies
    std::vector<LaunchStage> stages;    // several stages may have the same entry
    std::vector<StageLayout> layouts;   // per stage
    std::string description;
  };
  Result finish() const;

 private:
  struct Body {
    std::string text;
    std::string schedule;                      // schedule of the first part
    std::vector<LaunchStage> parts;            // the operands of patches are those of the segment
    std::vector<StageLayout::Struct> structs;  // argument structs of the parts
  };
  struct Range {
    size_t body;
    size_t begin;  // indices into Body::parts
    size_t end;
  };
  using Launch = std::vector<Range>;
  // Launches with the same bodies have the same kernel.
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
