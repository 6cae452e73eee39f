#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "host/device/device_tensor.h"
#include "host/plan/plan.h"
#include "host/plan/size_inputs.h"

namespace heddle::host {

// The tensors of a run. The object refers to lists of the caller.
struct RunTensors {
  const std::vector<Argument>& inputs;
  const std::vector<Tensor>& preallocated;  // RunOptions::preallocated
  const std::vector<size_t>& donated;       // RunOptions::donated
};

// Everything about the tensors of a run on which its plan (host/plan/plan.h) depends, as one list
// of numbers: the descriptors and the alignments of the inputs and of the preallocated outputs,
// which arguments are scalars, which inputs are in host memory, and which are donated. Addresses
// and scalars are not part of the key.
class RunKey {
 public:
  explicit RunKey(const RunTensors& tensors);
  // Returns whether a key of these tensors equals this key. Allocates no memory.
  bool matches(const RunTensors& tensors) const;
  // Returns the hash that a key of these tensors has. Allocates no memory.
  static size_t hashOf(const RunTensors& tensors);

 private:
  std::vector<int64_t> numbers_;
};

// Caches up to kMost values, one for each key of a run. The key consists of the RunKey and the
// values of the inputs that decide sizes. For late inputs (host/unroll/late_scalars.h), a value is
// found for all numbers in a range. A full cache drops the least recently used value. Not
// thread-safe.
template <class Value>
class RunCache {
 public:
  static constexpr size_t kMost = 128;

  RunCache() = default;
  explicit RunCache(SizeInputs scalars) : scalars_(std::move(scalars)) {}

  // Returns the value for these arguments, or nullptr if there is none. Allocates no memory. The
  // pointer is valid until the next call of a member function.
  Value* find(const RunTensors& tensors) {
    if (entries_.empty()) return nullptr;
    if (matches(entries_.front(), tensors)) return &entries_.front().value;
    const size_t hash = RunKey::hashOf(tensors);
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (entry->hash != hash || !matches(*entry, tensors)) continue;
      std::rotate(entries_.begin(), entry, entry + 1);
      return &entries_.front().value;
    }
    return nullptr;
  }

  // Adds a value. `late` has the ranges of the late inputs (Plan::late).
  void add(const RunTensors& tensors, const std::map<int32_t, LateRange>& late, Value value) {
    Entry entry{RunKey::hashOf(tensors), RunKey(tensors), scalars_.ranges(tensors.inputs, late),
                std::move(value)};
    if (entries_.size() == kMost) entries_.pop_back();
    entries_.insert(entries_.begin(), std::move(entry));
  }

  template <class Condition>
  void eraseIf(const Condition& condition) {
    std::erase_if(entries_, [&](const Entry& entry) { return condition(entry.value); });
  }

 private:
  struct Entry {
    size_t hash;
    RunKey key;
    std::vector<LateRange> scalars;  // of the inputs that decide sizes
    Value value;
  };
  // Compares the scalars first, because many entries may differ only in them.
  bool matches(const Entry& entry, const RunTensors& tensors) const {
    return (scalars_.size() == 0 || scalars_.areWithin(entry.scalars, tensors.inputs)) &&
           entry.key.matches(tensors);
  }

  SizeInputs scalars_;
  std::vector<Entry> entries_;  // most recently used first
};

// Describes the tensors of a run in the form that makePlan() takes. If a list in the descriptor of
// a preallocated output is empty, it gets the values of an unpadded row-major tensor, except
// `global`: an empty list states no unsharded sizes.
// Throws UserError if a preallocated output is in host memory, if an axis of it with several
// elements has no positive stride, or if its elements overlap.
GivenTensors givenTensors(const RunTensors& tensors);

// Says which memory the run lets its values reuse. Throws UserError if a donated input is in host
// memory, or is no input of the run.
MemoryReuse reuseOf(const RunTensors& tensors);

}  // namespace heddle::host
