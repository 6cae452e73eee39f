#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "codegen/kernel.h"
#include "codegen/plan/analysis.h"
#include "codegen/plan/argument_value.h"
#include "codegen/plan/desc_list.h"
#include "codegen/plan/schedule.h"
#include "codegen/plan/space.h"
#include "ir/graph/fusion.h"

namespace heddle::codegen {

// Plans the kernels of one segment for many shapes. A kernel plan consists of a schedule, which is
// cheap to choose, and the kernel text, which is expensive. The text depends only on the schedule
// and on yes/no facts about the shapes, such as which strides are 1. Schedule and facts are the
// *form* of a kernel. All shapes with the same form share the text, the compiled image and the
// layout of the arguments. For a known form, bind() only computes the numbers of the arguments and
// the grid.
//
// Forms exist for loops (codegen/plan/loop_nest.h). Kernels of other kinds are planned by
// planKernel() (codegen/emit/plan_kernel.h) for every shape.
//
// Thread-safe.
class SegmentPlanner {
 public:
  // Throws UserError if the segment cannot be one kernel.
  SegmentPlanner(Fusion segment, Target target);

  // Does not depend on shapes.
  const Analysis& analysis() const { return analysis_; }

  struct Bound {
    KernelPlan plan;       // equal to the result of planKernel(), but without the source
    int64_t form = kNone;  // number of the form; kNone: the plan has no stages
  };
  static constexpr int64_t kNone = -1;
  // Returns the kernel for these operands (see planKernel()), if add() has been called for a kernel
  // of the same form. Otherwise returns nullopt. Throws UserError as planKernel() does.
  std::optional<Bound> bind(DescList inputs, DescList outputs,
                            const std::vector<int32_t>& alignments) const;

  // Adds the form of `plan`, which planKernel() has returned for these operands. Returns the number
  // of the form. Returns nullopt if the kernel has no form. Forms are numbered from 0. When
  // kMostForms exist, add() returns nullopt.
  std::optional<int64_t> add(DescList inputs, DescList outputs,
                             const std::vector<int32_t>& alignments, const KernelPlan& plan);
  static constexpr size_t kMostForms = 64;

 private:
  // One entry point of a form: the launch without the numbers of arguments and grid, and a
  // description of each argument.
  struct Entry {
    LaunchStage stage;
    std::vector<ArgumentValue> arguments;
  };
  struct Form {
    std::string facts;  // identifies the form
    std::vector<Entry> entries;
  };
  // The loops of a kernel for one set of shapes.
  struct Loops {
    struct Nest {
      Space space;
      Schedule schedule;
    };
    std::vector<Nest> nests;  // one per entry point; empty: nothing is launched
    int64_t reduced_count = 1;
    int64_t workspace_bytes = 0;
    std::string facts() const;
  };

  Space spaceFor(DescList inputs, DescList outputs, const std::vector<int32_t>& alignments) const;
  // Returns nullopt if the kernel for this space is no loop.
  std::optional<Loops> loopsFor(Space space) const;
  void dropUnused(Space& space) const;
  KernelPlan bound(const Form& form, const Loops& loops) const;
  // Returns the number of the form with these facts, or nullopt if there is none.
  std::optional<int64_t> numberOf(const std::string& facts) const;

  const Fusion segment_;
  const Target target_;
  const Analysis analysis_;
  bool has_forms_ = false;    // false: no kernel of the segment has a form
  std::vector<int> tensors_;  // operands that the loops use, in the order of Space::tensors
  std::vector<int> indexed_;  // the same for Space::indexed
  mutable std::mutex mutex_;  // guards forms_
  std::vector<std::unique_ptr<const Form>> forms_;
};

}  // namespace heddle::codegen
