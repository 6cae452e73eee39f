#pragma once

#include <string>
#include <unordered_map>

#include "codegen/plan/analysis.h"
#include "codegen/tile/program.h"
#include "ir/graph/fusion.h"

namespace heddle::codegen {

// The names that the values and axes of a segment have in the text of a kernel, for people who read
// this text. Generated texts contain only numbers, such as `t0` for a pointer, so that equal
// segments of a model have equal texts and share an image. This class appends the names of the
// fusion: `t0_x` is the pointer to the value %x, and `k0_t` counts along the axis with size t. An
// axis of the kernel that consists of several axes of the fusion has all their names (`k0_t_h`). An
// axis whose size is no single symbol has no name.
class TextNames {
 public:
  // `analysis` is the analysis from which the program was built.
  TextNames(const Fusion& segment, const Analysis& analysis, const TileProgram& program);

  // Returns `text`, which is the kernel text of the program or the result of printProgram(), with
  // names.
  std::string addTo(const std::string& text) const;

 private:
  void add(const std::string& word, const std::string& name);
  void addAccesses(const Fusion& segment, bool parts_are_tensors, const KernelFrame& frame);
  void addAxes(const Fusion& segment, const Analysis& analysis, const KernelFrame& frame);
  void addAccumulators(const Fusion& segment, const Analysis& analysis);

  std::unordered_map<std::string, std::string> names_;  // word of the text -> word with name
};

}  // namespace heddle::codegen
