#include "host/plan/stored_segment.h"

#include <utility>

namespace heddle::host {

codegen::SegmentPlanner& StoredSegment::planner() {
  std::call_once(planned_,
                 [&] { planner_ = std::make_unique<codegen::SegmentPlanner>(segment_, target_); });
  return *planner_;
}

std::optional<StoredSegment::Bound> StoredSegment::bind(
    const codegen::SegmentPlanner::Operands& operands) {
  std::optional<codegen::SegmentPlanner::Bound> bound = planner().bind(operands);
  if (!bound) return std::nullopt;
  Bound result{std::move(bound->plan), {}};
  if (bound->form == codegen::SegmentPlanner::kNone) return result;
  const auto form = static_cast<size_t>(bound->form);
  std::lock_guard lock(mutex_);
  if (form >= handles_.size() || handles_[form].empty()) return std::nullopt;
  result.handles = handles_[form];
  return result;
}

bool StoredSegment::add(const codegen::SegmentPlanner::Operands& operands,
                        const codegen::KernelPlan& plan, std::vector<codegen::StageLayout> layouts,
                        std::vector<KernelHandle> handles) {
  const std::optional<int64_t> form = planner().add(operands, plan, std::move(layouts));
  if (!form) return false;
  std::lock_guard lock(mutex_);
  if (handles_.size() <= static_cast<size_t>(*form))
    handles_.resize(static_cast<size_t>(*form) + 1);
  handles_[static_cast<size_t>(*form)] = std::move(handles);
  return true;
}

}  // namespace heddle::host
