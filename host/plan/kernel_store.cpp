#include "host/plan/kernel_store.h"

#include "codegen/compile/image_cache.h"
#include "ir/base/error.h"

namespace heddle::host {

KernelStore::KernelStore(Device& device, codegen::ImageCache* images)
    : device_(device), images_(images) {}

void KernelStore::prepare(const std::vector<const codegen::KernelPlan*>& plans) {
  // New sources are added to loaded_ before the compiler runs. The compiler runs without mutex_, so
  // that handle() does not wait for the compiler. If the compiler fails, the new sources are
  // removed.
  std::lock_guard preparing(preparing_);
  std::vector<const codegen::KernelSource*> added;
  {
    std::lock_guard lock(mutex_);
    for (const codegen::KernelPlan* plan : plans) {
      if (plan->stages.empty()) continue;
      if (loaded_.try_emplace(plan->source.text).second) added.push_back(&plan->source);
    }
  }
  if (images_ == nullptr) {
    own_images_ = std::make_unique<codegen::ImageCache>();
    images_ = own_images_.get();
  }
  std::vector<std::shared_ptr<const codegen::KernelImage>> images;
  const auto forget = [&] {
    std::lock_guard lock(mutex_);
    for (const codegen::KernelSource* source : added) loaded_.erase(source->text);
  };
  int64_t compiled = 0;
  try {
    if (!added.empty()) images = images_->get(added, *device_.compiler(), &compiled);
  } catch (...) {
    forget();
    throw;
  }
  std::lock_guard lock(mutex_);
  counts_.texts += static_cast<int64_t>(plans.size());
  counts_.compiled += compiled;
  counts_.loaded += static_cast<int64_t>(added.size()) - compiled;
  for (size_t i = 0; i < added.size(); ++i) loaded_[added[i]->text].image = images[i];
  for (const codegen::KernelPlan* plan : plans) {
    for (const codegen::LaunchStage& stage : plan->stages) {
      Loaded& loaded = loaded_.at(plan->source.text);
      if (loaded.entries.contains(stage.entry)) continue;
      loaded.entries.emplace(stage.entry, device_.load(*loaded.image, stage.entry));
    }
  }
}

KernelHandle KernelStore::handle(const std::string& source, const std::string& entry) const {
  std::lock_guard lock(mutex_);
  auto found = loaded_.find(source);
  HEDDLE_CHECK(found != loaded_.end() && found->second.entries.contains(entry),
               "kernel {} was not loaded", entry);
  return found->second.entries.at(entry);
}

KernelStore::Counts KernelStore::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace heddle::host
