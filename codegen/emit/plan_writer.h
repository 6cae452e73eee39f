#pragma once

#include <string>
#include <vector>

#include "codegen/emit/plan_kernel.h"
#include "codegen/frame/argument_value.h"
#include "codegen/kernel.h"
#include "codegen/plan/analysis.h"
#include "codegen/tile/program.h"
#include "ir/graph/fusion.h"

namespace heddle::codegen {

// Collects the launches of one segment: their texts, their arguments, and the texts for people.
class PlanWriter {
 public:
  // `texts` receives the texts for people; nullptr: nobody reads them.
  PlanWriter(Target target, KernelTexts* texts);

  // Adds the launch of a program. `segment` is what the program computes, and `analysis` is the
  // analysis from which it was built. The text for people begins with `before`. Moves the arguments
  // out of the program.
  void addLaunch(TileProgram& program, const Fusion& segment, const Analysis& analysis,
                 const char* before = "");
  // Cuda: adds one launch that computes both halves of a reduction in ranges
  // (codegen/families/loops.h). `entry` is the name of its entry point.
  void addRanges(const std::string& entry, TileProgram& first, TileProgram& second,
                 const Fusion& segment, const Analysis& analysis);
  // Adds only the text for people. Use this for a program with nothing to store.
  void describe(const TileProgram& program, const Fusion& segment, const Analysis& analysis,
                const char* before = "");
  // Appends to KernelTexts::schedule.
  void say(const std::string& text);
  // Adds the text of shared launches. Several parts share it, so it has no names.
  void addUnnamed(const std::string& text);

  KernelPlan plan;
  // The layout of each stage of the plan. The layouts number the entries from 0.
  std::vector<StageLayout> layouts;

  KernelTexts* texts() const { return texts_; }

 private:
  void addText(const std::string& text, const TileProgram& program, const Fusion& segment,
               const Analysis& analysis);

  KernelTexts* const texts_;
};

}  // namespace heddle::codegen
