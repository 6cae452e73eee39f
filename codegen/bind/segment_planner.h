#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/bind/entry_numbers.h"
#include "codegen/bind/piece_planner.h"
#include "codegen/frame/argument_value.h"
#include "codegen/kernel.h"
#include "codegen/plan/analysis.h"
#include "codegen/plan/desc_list.h"
#include "codegen/plan/generated.h"
#include "ir/graph/fusion.h"

namespace heddle::codegen {

// Plans the kernels of one segment for many shapes. To plan a kernel means to choose a schedule,
// which is cheap, and to write the text, which is expensive. The text depends only on the schedule
// and on yes/no facts about the shapes, such as which strides are 1. The schedule and these facts
// are the *form* of a kernel. All shapes with the same form share the text, the compiled image and
// the layout of the arguments. For further shapes of a form, bind() computes only the numbers of
// the arguments and the grid. Every kernel with a launch has a form, also a kernel that has several
// launches or a shared launch (StageLayout::first).
//
// Thread-safe.
class SegmentPlanner {
 public:
  // Throws UserError if the segment cannot be one kernel.
  SegmentPlanner(Fusion segment, Target target);

  // Returns the analysis of the segment. It does not depend on shapes.
  const Analysis& analysis() const { return analysis_; }

  // The operands of a kernel, as for planKernel() (codegen/emit/plan_kernel.h).
  struct Operands {
    DescList inputs;
    DescList outputs;
    const std::vector<int32_t>& alignments;
    const RunSizes& run;
    const KernelChoice* choice = nullptr;
  };
  struct Bound {
    KernelPlan plan;       // the result of planKernel() without source text and candidate
    int64_t form = kNone;  // number of the form; kNone: the plan has no stages
  };
  static constexpr int64_t kNone = -1;
  // Returns the kernel for these operands, if the kernel has no launches, or if add() has added a
  // kernel of the same form. Otherwise returns nullopt. Throws UserError as planKernel() does.
  std::optional<Bound> bind(const Operands& operands);

  // Adds the form of `plan` and returns the number of the form. planKernel() must have returned
  // `plan` and `layouts` for these operands. Forms are numbered from 0. If the form already exists,
  // returns its number. Returns nullopt if the plan has no stages, or if the form is new and
  // kMostForms forms exist.
  std::optional<int64_t> add(const Operands& operands, const KernelPlan& plan,
                             std::vector<StageLayout> layouts);
  static constexpr size_t kMostForms = 64;

  // Returns the numbers of the kernel for these operands.
  KernelNumbers numbers(const Operands& operands);

 private:
  struct Form {
    // The launches for some shapes. bind() replaces grids, cleared bytes, the offsets of
    // temporaries (PointerPatch::workspace_offset) and the arguments that depend on shapes.
    std::vector<LaunchStage> stages;
    std::vector<StageLayout> layouts;  // per stage
  };
  // An independent part of the segment (Analysis::parts).
  struct Part {
    PiecePlanner planner;
    std::vector<int> operands;  // operands of the segment that the part has (SegmentPart::operands)
    PartSizes sizes;
    std::vector<int32_t> alignments = {};  // working memory of decidePart()
  };

  // Appends the numbers of the kernel to `numbers`. Returns the bytes of the workspace.
  int64_t decide(const Operands& operands, KernelNumbers& numbers);
  int64_t decidePart(const Operands& operands, Part& part, KernelNumbers& numbers) const;
  static KernelPlan bound(const Form& form, const KernelNumbers& numbers, int64_t workspace_bytes,
                          Target target);

  const Fusion segment_;
  const Target target_;
  const Analysis analysis_;
  std::mutex mutex_;     // guards all members below
  KernelNumbers bound_;  // result of the latest bind(); the next bind() reuses the memory
  std::optional<PiecePlanner> whole_;
  std::deque<Part> parts_;
  std::unordered_map<std::string, int64_t> numbers_;  // KernelNumbers::facts -> number of the form
  std::deque<Form> forms_;
};

}  // namespace heddle::codegen
