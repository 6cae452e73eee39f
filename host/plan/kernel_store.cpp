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
  size_t hash = key.segment;
  for (const auto* descs : {&key.inputs, &key.outputs}) {
    for (const TensorDesc& desc : *descs) {
      boost::hash_range(hash, desc.sizes.begin(), desc.sizes.end());
      boost::hash_range(hash, desc.strides.begin(), desc.strides.end());
    }
  }
  return hash;
}

// Returns a text that identifies the segment, except for its name and the names of its values. The
// text contains the text form, the numbers of the values, and the kinds of their axes. The numbers
// count because StoredSegment stores an analysis that refers to values by number.
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

KernelStore::KernelStore(Device& device, codegen::ImageCache* images, int64_t most_bytes)
    : device_(device), images_(images), most_bytes_(most_bytes) {}

bool KernelStore::Source::isUsed() const {
  return std::any_of(entries.begin(), entries.end(),
                     [](const auto& entry) { return entry.second.use_count() > 1; });
}

std::map<std::string_view, KernelStore::SourcePtr> KernelStore::sourcesOf(
    const std::vector<const codegen::KernelPlan*>& plans) const {
  std::map<std::string_view, SourcePtr> sources;
  std::lock_guard lock(mutex_);
  for (const codegen::KernelPlan* plan : plans) {
    if (plan->stages.empty()) continue;
    SourcePtr& source = sources[plan->source.text];
    const auto found = sources_.find(plan->source.text);
    if (!source) source = found == sources_.end() ? std::make_shared<Source>() : found->second;
  }
  return sources;
}

void KernelStore::addImages(const std::vector<const codegen::KernelPlan*>& plans,
                            std::map<std::string_view, SourcePtr>& sources) {
  std::vector<const codegen::KernelSource*> added;
  std::set<const Source*> seen;
  for (const codegen::KernelPlan* plan : plans) {
    if (plan->stages.empty()) continue;
    const SourcePtr& source = sources.at(plan->source.text);
    if (!source->image && seen.insert(source.get()).second) added.push_back(&plan->source);
  }
  const std::vector<Image> images = imagesOf(added);
  for (size_t i = 0; i < added.size(); ++i) sources.at(added[i]->text)->image = images[i];
}

std::vector<KernelStore::Image> KernelStore::imagesOf(
    const std::vector<const codegen::KernelSource*>& sources) {
  if (sources.empty()) return {};
  std::call_once(own_images_made_, [&] {
    if (images_ != nullptr) return;
    own_images_ = std::make_unique<codegen::ImageCache>();
    images_ = own_images_.get();
  });
  const auto begin = std::chrono::steady_clock::now();
  int64_t compiled = 0;
  std::vector<Image> images = images_->get(sources, *device_.compiler(), &compiled);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::lock_guard lock(mutex_);
  counts_.compiled += compiled;
  counts_.compile_seconds += seconds.count();
  return images;
}

void KernelStore::compile(const std::vector<const codegen::KernelPlan*>& plans) {
  std::map<std::string_view, SourcePtr> sources = sourcesOf(plans);
  addImages(plans, sources);
}

KernelStore::Prepared KernelStore::prepare(const std::vector<const codegen::KernelPlan*>& plans) {
  std::map<std::string_view, SourcePtr> sources = sourcesOf(plans);
  addImages(plans, sources);
  Prepared prepared;
  std::lock_guard loading(loading_);
  {
    std::lock_guard lock(mutex_);
    prepared.bytes = -bytes_.total();
    counts_.texts += static_cast<int64_t>(plans.size());
    for (auto& [text, source] : sources) {
      // Another thread may have added a source with this text meanwhile.
      const auto [entry, is_new] = sources_.try_emplace(std::string(text), source);
      source = entry->second;
      source->last_use = ++uses_;
      if (is_new) bytes_.add(source->image, text);
    }
    prepared.bytes += bytes_.total();
  }
  prepared.kernels.resize(plans.size());
  for (size_t i = 0; i < plans.size(); ++i) {
    for (const codegen::LaunchStage& stage : plans[i]->stages) {
      prepared.kernels[i].push_back(entryOf(*sources.at(plans[i]->source.text), stage.entry));
    }
  }
  return prepared;
}

// Loads the entry if it is missing. Only a thread that holds loading_ adds entries. The device
// loads without mutex_, because this can take long.
LoadedKernel KernelStore::entryOf(Source& source, const std::string& entry) {
  {
    std::lock_guard lock(mutex_);
    const auto found = source.entries.find(entry);
    if (found != source.entries.end()) return found->second;
  }
  LoadedKernel loaded = device_.load(*source.image, entry);
  std::lock_guard lock(mutex_);
  return source.entries.emplace(entry, std::move(loaded)).first->second;
}

void KernelStore::unloadUnused() {
  std::vector<SourcePtr> unloaded;  // destroyed without the lock, because unloading can take long
  std::lock_guard lock(mutex_);
  if (bytes_.total() <= most_bytes_) return;
  std::vector<std::pair<int64_t, const std::string*>> unused;
  for (const auto& [text, source] : sources_) {
    // A second copy of the pointer belongs to a running prepare() or compile(). When prepare() has
    // returned, its result holds the kernels, so isUsed() is true.
    if (source.use_count() == 1 && !source->isUsed()) unused.push_back({source->last_use, &text});
  }
  std::sort(unused.begin(), unused.end());
  for (const auto& [last_use, text] : unused) {
    if (bytes_.total() <= most_bytes_) break;
    const auto source = sources_.find(*text);
    bytes_.remove(source->second->image, source->first);
    unloaded.push_back(std::move(source->second));
    sources_.erase(source);
    ++counts_.unloaded;
  }
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

std::optional<KernelStore::Kernel> KernelStore::find(const Key& key) {
  const size_t hash = hashOf(key);
  std::lock_guard lock(mutex_);
  const auto [begin, end] = kernels_.equal_range(hash);
  for (auto found = begin; found != end; ++found) {
    if (!(found->second.first == key)) continue;
    const Stored& stored = found->second.second;
    std::optional<Loaded> loaded = lockAll(stored.loaded);
    if (!loaded) {
      kernels_.erase(found);
      return std::nullopt;
    }
    ++counts_.reused;
    return Kernel{stored.plan, std::move(*loaded)};
  }
  return std::nullopt;
}

void KernelStore::add(Key key, codegen::KernelPlan plan, const Loaded& loaded) {
  const size_t hash = hashOf(key);
  Stored stored{std::move(plan), {loaded.begin(), loaded.end()}};
  std::lock_guard lock(mutex_);
  if (kernels_.size() >= kMostKernels) kernels_.clear();
  kernels_.emplace(hash, std::pair(std::move(key), std::move(stored)));
}

KernelStore::Counts KernelStore::counts() const {
  std::lock_guard lock(mutex_);
  Counts counts = counts_;
  const auto got = static_cast<int64_t>(sources_.size()) + counts.unloaded;
  counts.loaded = std::max<int64_t>(0, got - counts.compiled);
  counts.bytes = bytes_.total();
  return counts;
}

}  // namespace heddle::host
