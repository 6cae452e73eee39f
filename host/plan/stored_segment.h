#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "codegen/bind/segment_planner.h"
#include "codegen/kernel.h"
#include "codegen/plan/desc_list.h"
#include "host/device/device.h"
#include "ir/graph/fusion.h"

namespace heddle::host {

// References to the loaded stages of a kernel, one per stage. They do not keep the kernel loaded.
using WeakKernels = std::vector<std::weak_ptr<const void>>;
// Returns pointers that keep the stages loaded. Returns nullopt if a stage was already unloaded.
std::optional<std::vector<LoadedKernel>> lockAll(const WeakKernels& kernels);

// A segment (the part of a fusion from which a kernel is generated) whose kernels a KernelStore
// holds. All programs that use the store and contain an equal segment share the object. The form of
// a kernel is its schedule and the yes/no facts on which its text depends
// (codegen/bind/segment_planner.h). Thread-safe.
class StoredSegment {
 public:
  StoredSegment(int64_t number, Fusion segment, codegen::Target target)
      : number_(number), segment_(std::move(segment)), target_(target) {}

  int64_t number() const { return number_; }  // KernelStore::Key::segment
  // Returns the segment from which the object was created. The values of an equal segment may have
  // other names.
  const Fusion& segment() const { return segment_; }
  // Returns the planner of the segment. The first call analyzes the segment, and throws UserError
  // if the segment cannot be one kernel.
  codegen::SegmentPlanner& planner();

  struct Bound {
    codegen::KernelPlan plan;          // without source
    std::vector<LoadedKernel> loaded;  // one per stage of `plan`
  };
  // Returns the kernel for these operands, if add() was called for a kernel of the same form
  // (codegen::SegmentPlanner::bind()), and this kernel is still loaded. Also returns a kernel
  // without stages, even without a call of add(). In all other cases returns nullopt.
  std::optional<Bound> bind(const codegen::SegmentPlanner::Operands& operands);
  // Stores a kernel for bind(). `plan` and `layouts` are the results of codegen::planKernel() for
  // these operands. Does not keep the kernel loaded. Returns false if the kernel has no stages, or
  // if the segment has too many forms (codegen::SegmentPlanner::add()).
  bool add(const codegen::SegmentPlanner::Operands& operands, const codegen::KernelPlan& plan,
           std::vector<codegen::StageLayout> layouts, const std::vector<LoadedKernel>& loaded);

 private:
  const int64_t number_;
  const Fusion segment_;
  const codegen::Target target_;
  std::once_flag planned_;
  std::unique_ptr<codegen::SegmentPlanner> planner_;
  std::mutex mutex_;                // guards loaded_
  std::deque<WeakKernels> loaded_;  // per form; empty: add() has not ended yet
};

}  // namespace heddle::host
