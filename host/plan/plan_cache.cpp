#include "host/plan/plan_cache.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>

#include "ir/base/error.h"

namespace heddle::host {
namespace {

void addToHash(size_t& hash, const TensorDesc& desc) {
  boost::hash_combine(hash, static_cast<int>(desc.dtype));
  for (const auto* list : {&desc.global, &desc.sizes, &desc.alloc, &desc.strides}) {
    boost::hash_range(hash, list->begin(), list->end());
  }
}

size_t hashOf(const std::vector<Argument>& inputs, const std::vector<Tensor>& preallocated) {
  size_t hash = inputs.size();
  for (const Argument& input : inputs) {
    if (const auto* tensor = std::get_if<Tensor>(&input)) addToHash(hash, tensor->desc);
  }
  for (const Tensor& tensor : preallocated) {
    if (tensor.data != nullptr) addToHash(hash, tensor.desc);
  }
  return hash;
}

}  // namespace

bool PlanCache::matches(const Entry& entry, const std::vector<Argument>& inputs,
                        const std::vector<Tensor>& preallocated) {
  if (entry.inputs.size() != inputs.size()) return false;
  if (entry.preallocated.size() != preallocated.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto* tensor = std::get_if<Tensor>(&inputs[i]);
    if ((tensor != nullptr) != entry.inputs[i].has_value()) return false;
    if (tensor == nullptr) continue;
    if (tensor->desc != *entry.inputs[i]) return false;
    if (tensor->in_host_memory != entry.in_host_memory[i]) return false;
  }
  for (size_t i = 0; i < preallocated.size(); ++i) {
    const bool given = preallocated[i].data != nullptr;
    if (given != entry.preallocated[i].has_value()) return false;
    if (given && preallocated[i].desc != *entry.preallocated[i]) return false;
  }
  return true;
}

std::shared_ptr<const Plan> PlanCache::find(const std::vector<Argument>& inputs,
                                            const std::vector<Tensor>& preallocated) {
  if (entries_.empty()) return nullptr;
  if (matches(entries_.front(), inputs, preallocated)) return entries_.front().plan;
  const size_t hash = hashOf(inputs, preallocated);
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->hash != hash || !matches(*entry, inputs, preallocated)) continue;
    std::rotate(entries_.begin(), entry, entry + 1);
    return entries_.front().plan;
  }
  return nullptr;
}

void PlanCache::add(const std::vector<Argument>& inputs, const std::vector<Tensor>& preallocated,
                    std::shared_ptr<const Plan> plan) {
  Entry entry;
  entry.hash = hashOf(inputs, preallocated);
  for (const Argument& input : inputs) {
    const auto* tensor = std::get_if<Tensor>(&input);
    entry.inputs.push_back(tensor == nullptr ? std::nullopt : std::optional(tensor->desc));
    entry.in_host_memory.push_back(tensor != nullptr && tensor->in_host_memory);
  }
  for (const Tensor& tensor : preallocated) {
    entry.preallocated.push_back(tensor.data == nullptr ? std::nullopt
                                                        : std::optional(tensor.desc));
  }
  entry.plan = std::move(plan);
  if (entries_.size() == kMost) entries_.pop_back();
  entries_.insert(entries_.begin(), std::move(entry));
}

std::vector<std::optional<TensorDesc>> preallocatedDescs(const std::vector<Tensor>& preallocated) {
  std::vector<std::optional<TensorDesc>> descs;
  for (size_t i = 0; i < preallocated.size(); ++i) {
    descs.emplace_back();
    if (preallocated[i].data == nullptr) continue;
    TensorDesc desc = preallocated[i].desc;
    if (desc.global.empty()) desc.global = desc.sizes;
    if (desc.alloc.empty()) desc.alloc = desc.sizes;
    if (desc.strides.empty()) desc.strides = stridesFor(desc.alloc, rowMajor(desc.rank()));
    if (desc.offset.empty()) desc.offset.assign(desc.rank(), 0);
    for (size_t axis = 0; axis < desc.rank(); ++axis) {
      HEDDLE_USER_CHECK(desc.sizes[axis] <= 1 || desc.strides.at(axis) > 0,
                        "preallocated output {}: axis {} of size {} has the stride {}", i, axis,
                        desc.sizes[axis], desc.strides.at(axis));
    }
    descs.back() = std::move(desc);
  }
  return descs;
}

}  // namespace heddle::host
