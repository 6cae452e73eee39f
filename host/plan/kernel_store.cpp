#include "host/plan/kernel_store.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>
#include <chrono>
#include <set>
#include <string_view>

#include "codegen/compile/image_cache.h"
#include "ir/base/check.h"
#include "ir/text/fusion_text.h"

namespace heddle::host {
namespace {

size_t hashOf(const KernelStore::Key& key) {
  size_t hash = static_cast<size_t>(key.segment);
  for (const auto* descs : {&key.inputs, &key.outputs}) {
    for (const TensorDesc& desc : *descs) {
      boost::hash_range(hash, desc.sizes.begin(), desc.sizes.end());
      boost::hash_range(hash, desc.strides.begin(), desc.strides.end());
    }
  }
  return hash;
}

// Returns a text that contains everything about the segment except names: its text, the numbers of
// its values, and the kinds of their axes. The analysis of a segment contains numbers of values.
std::string identityOf(const Fusion& given) {
  Fusion segment = given;
  segment.name = "segment";
  for (ValueId id : segment.values().ids()) {
    segment.mutableValue(id).name = fmt::format("v{}", id.number());
  }
  std::string text = print(segment);
  const auto add = [&](const std::vector<ValueId>& ids) {
    for (ValueId id : ids) text += fmt::format(" {}", id.number());
    text += ';';
  };
  add(segment.inputs());
  add(segment.outputs());
  for (const Expression& expr : segment.exprs()) {
    add(expr.inputs);
    add(expr.outputs);
  }
  for (const Value& value : segment.values()) {
    for (const IterDomain& axis : value.tensor.domain) {
      text += fmt::format(" {}", static_cast<int>(axis.kind));
    }
    text += ';';
  }
  return text;
}

}  // namespace

KernelStore::KernelStore(Device& device, codegen::ImageCache* images)
    : device_(device), images_(images) {}

std::vector<const codegen::KernelSource*> KernelStore::newSources(
    const std::vector<const codegen::KernelPlan*>& plans) const {
  std::vector<const codegen::KernelSource*> sources;
  std::set<std::string_view> seen;
  std::lock_guard lock(mutex_);
  for (const codegen::KernelPlan* plan : plans) {
    if (plan->stages.empty() || loaded_.contains(plan->source.text)) continue;
    if (seen.insert(plan->source.text).second) sources.push_back(&plan->source);
  }
  return sources;
}

KernelStore::Images KernelStore::imagesOf(
    const std::vector<const codegen::KernelSource*>& sources) {
  if (sources.empty()) return {};
  std::call_once(own_images_made_, [&] {
    if (images_ != nullptr) return;
    own_images_ = std::make_unique<codegen::ImageCache>();
    images_ = own_images_.get();
  });
  const auto begin = std::chrono::steady_clock::now();
  int64_t compiled = 0;
  Images images = images_->get(sources, *device_.compiler(), &compiled);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::lock_guard lock(mutex_);
  counts_.compiled += compiled;
  counts_.compile_seconds += seconds.count();
  return images;
}

void KernelStore::compile(const std::vector<const codegen::KernelPlan*>& plans) {
  imagesOf(newSources(plans));
}

void KernelStore::prepare(const std::vector<const codegen::KernelPlan*>& plans) {
  const std::vector<const codegen::KernelSource*> added = newSources(plans);
  const Images images = imagesOf(added);
  std::lock_guard loading(loading_);
  {
    std::lock_guard lock(mutex_);
    counts_.texts += static_cast<int64_t>(plans.size());
    for (size_t i = 0; i < added.size(); ++i) {
      // Another thread may have added the source meanwhile.
      const auto [entry, is_new] = loaded_.try_emplace(added[i]->text);
      if (is_new) entry->second.image = images[i];
    }
  }
  // Only threads that hold loading_ add entries to a source that is in loaded_.
  for (const codegen::KernelPlan* plan : plans) {
    for (const codegen::LaunchStage& stage : plan->stages) {
      std::unique_lock lock(mutex_);
      Loaded& loaded = loaded_.at(plan->source.text);
      if (loaded.entries.contains(stage.entry)) continue;
      const std::shared_ptr<const codegen::KernelImage> image = loaded.image;
      lock.unlock();
      const KernelHandle handle = device_.load(*image, stage.entry);
      lock.lock();
      loaded.entries.emplace(stage.entry, handle);
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

std::shared_ptr<StoredSegment> KernelStore::segmentOf(const Fusion& segment) {
  std::string text = identityOf(segment);
  std::lock_guard lock(mutex_);
  std::shared_ptr<StoredSegment>& stored = segments_[std::move(text)];
  if (!stored) {
    const auto number = static_cast<int64_t>(segments_.size()) - 1;
    stored = std::make_shared<StoredSegment>(number, segment, device_.compiler()->target());
  }
  return stored;
}

std::optional<StoredSegment::Bound> KernelStore::bind(
    StoredSegment& segment, const codegen::SegmentPlanner::Operands& operands) {
  std::optional<StoredSegment::Bound> bound = segment.bind(operands);
  if (!bound) return std::nullopt;
  std::lock_guard lock(mutex_);
  ++counts_.reused;
  return bound;
}

std::shared_ptr<const KernelStore::Kernel> KernelStore::find(const Key& key) {
  const size_t hash = hashOf(key);
  std::lock_guard lock(mutex_);
  const auto [begin, end] = kernels_.equal_range(hash);
  for (auto found = begin; found != end; ++found) {
    if (!(found->second.first == key)) continue;
    ++counts_.reused;
    return found->second.second;
  }
  return nullptr;
}

void KernelStore::add(Key key, std::shared_ptr<const Kernel> kernel) {
  const size_t hash = hashOf(key);
  std::lock_guard lock(mutex_);
  if (kernels_.size() >= kMostKernels) kernels_.clear();
  kernels_.emplace(hash, std::pair(std::move(key), std::move(kernel)));
}

KernelStore::Counts KernelStore::counts() const {
  std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.loaded = std::max<int64_t>(0, static_cast<int64_t>(loaded_.size()) - counts.compiled);
  return counts;
}

}  // namespace heddle::host
