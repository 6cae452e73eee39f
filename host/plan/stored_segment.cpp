#include "host/plan/stored_segment.h"

#include <utility>

namespace heddle::host {

std::optional<std::vector<LoadedKernel>> lockAll(const WeakKernels& kernels) {
  std::vector<LoadedKernel> loaded;
  loaded.reserve(kernels.size());
  for (const std::weak_ptr<const void>& kernel : kernels) {
    if (!loaded.emplace_back(kernel.lock())) return std::nullopt;
  }
  return loaded;
}

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
  const size_t form = bound->form;
  std::lock_guard lock(mutex_);
  if (form >= loaded_.size() || loaded_[form].empty()) return std::nullopt;
  std::optional<std::vector<LoadedKernel>> loaded = lockAll(loaded_[form]);
  if (!loaded) return std::nullopt;
  result.loaded = std::move(*loaded);
  return result;
}

bool StoredSegment::add(const codegen::SegmentPlanner::Operands& operands,
                        const codegen::KernelPlan& plan, std::vector<codegen::StageLayout> layouts,
                        const std::vector<LoadedKernel>& loaded) {
  const std::optional<int64_t> form = planner().add(operands, plan, std::move(layouts));
  if (!form) return false;
  std::lock_guard lock(mutex_);
  const size_t number = *form;
  if (loaded_.size() <= number) loaded_.resize(number + 1);
  loaded_[number].assign(loaded.begin(), loaded.end());
  return true;
}

}  // namespace heddle::host
