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

// Returns the descriptor of preallocated output `output` without empty lists.
TensorDesc completeDesc(TensorDesc desc, size_t output) {
  if (desc.global.empty()) desc.global = desc.sizes;
  if (desc.alloc.empty()) desc.alloc = desc.sizes;
  if (desc.strides.empty()) desc.strides = stridesFor(desc.alloc, rowMajor(desc.rank()));
  if (desc.offset.empty()) desc.offset.assign(desc.rank(), 0);
  for (size_t axis = 0; axis < desc.rank(); ++axis) {
    HEDDLE_USER_CHECK(desc.sizes[axis] <= 1 || desc.strides.at(axis) > 0,
                      "preallocated output {}: axis {} of size {} has the stride {}", output, axis,
                      desc.sizes[axis], desc.strides.at(axis));
  }
  return desc;
}

// A tensor without elements may have no data. A tensor in host memory is passed by value, so a new
// address needs no new plan.
int32_t alignmentOf(const Tensor& tensor) {
  if (tensor.in_host_memory) return codegen::kFullAlignment;
  return codegen::alignmentOf(reinterpret_cast<uintptr_t>(tensor.data));
}

// Returns nullptr for an output that is not preallocated.
const Tensor* givenTensor(const Tensor& tensor) {
  return tensor.data == nullptr ? nullptr : &tensor;
}

}  // namespace

bool PlanCache::matches(const Given& given, const Tensor* tensor) {
  if (tensor == nullptr) return !given.desc;
  return given.desc && tensor->desc == *given.desc &&
         tensor->in_host_memory == given.in_host_memory && alignmentOf(*tensor) == given.alignment;
}

size_t PlanCache::hashOf(const std::vector<Argument>& inputs,
                         const std::vector<Tensor>& preallocated) const {
  size_t hash = inputs.size();
  for (const Argument& input : inputs) {
    if (const auto* tensor = std::get_if<Tensor>(&input)) addToHash(hash, tensor->desc);
  }
  for (const Tensor& tensor : preallocated) {
    if (tensor.data != nullptr) addToHash(hash, tensor.desc);
  }
  for (size_t i = 0; i < scalars_.size(); ++i) {
    if (scalars_.isLate(i)) continue;
    boost::hash_combine(hash, scalars_.value(i, inputs));
  }
  return hash;
}

bool PlanCache::matches(const Entry& entry, const std::vector<Argument>& inputs,
                        const std::vector<Tensor>& preallocated) const {
  if (entry.inputs.size() != inputs.size()) return false;
  if (entry.preallocated.size() != preallocated.size()) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!matches(entry.inputs[i], std::get_if<Tensor>(&inputs[i]))) return false;
  }
  for (size_t i = 0; i < preallocated.size(); ++i) {
    if (!matches(entry.preallocated[i], givenTensor(preallocated[i]))) return false;
  }
  return scalars_.areWithin(entry.scalars, inputs);
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
  const auto given = [](const Tensor* tensor) {
    if (tensor == nullptr) return Given{};
    return Given{tensor->desc, tensor->in_host_memory, alignmentOf(*tensor)};
  };
  for (const Argument& input : inputs) {
    entry.inputs.push_back(given(std::get_if<Tensor>(&input)));
  }
  for (const Tensor& tensor : preallocated) {
    entry.preallocated.push_back(given(givenTensor(tensor)));
  }
  entry.scalars = scalars_.ranges(inputs, plan->late);
  entry.plan = std::move(plan);
  if (entries_.size() == kMost) entries_.pop_back();
  entries_.insert(entries_.begin(), std::move(entry));
}

GivenTensors givenTensors(const std::vector<Argument>& inputs,
                          const std::vector<Tensor>& preallocated) {
  GivenTensors given;
  for (const Argument& input : inputs) {
    const auto* tensor = std::get_if<Tensor>(&input);
    given.by_value.push_back(tensor != nullptr && tensor->in_host_memory);
    given.input_alignments.push_back(tensor == nullptr ? codegen::kFullAlignment
                                                       : alignmentOf(*tensor));
  }
  for (size_t i = 0; i < preallocated.size(); ++i) {
    given.output_alignments.push_back(alignmentOf(preallocated[i]));
    given.preallocated.emplace_back();
    if (preallocated[i].data == nullptr) continue;
    given.preallocated.back() = completeDesc(preallocated[i].desc, i);
  }
  return given;
}

}  // namespace heddle::host
