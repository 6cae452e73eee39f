#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <unordered_map>
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

// The properties of a run's tensors that decide its plan (host/plan/plan.h), as one list of
// numbers. The list contains the descriptors and the alignments of the inputs and of the
// preallocated outputs. It also says which inputs are scalars, in host memory, or donated.
// Addresses and the values of scalars are not part of the key.
class RunKey {
 public:
  explicit RunKey(const RunTensors& tensors);
  // Returns whether a key of these tensors equals this key. Allocates no memory.
  bool matches(const RunTensors& tensors) const;
  // Returns a hash of the key of these tensors. Allocates no memory.
  static size_t hashOf(const RunTensors& tensors);

 private:
  std::vector<int64_t> numbers_;
};

// Caches values, one for each key of a run. The key consists of the RunKey and the values of the
// inputs that decide sizes or offsets (SizeInputs). For a late input, which decides only where
// slices begin (host/unroll/late_scalars.h), the key contains a range of values instead of one
// value. A full cache drops the least recently used values. Not thread-safe.
template <class Value>
class RunCache {
 public:
  struct Limits {
    size_t most = 1024;                  // largest number of values
    int64_t bytes = int64_t{256} << 20;  // largest total size of the values
  };

  RunCache() = default;
  RunCache(SizeInputs scalars, Limits limits) : scalars_(std::move(scalars)), limits_(limits) {}

  // Returns the value for these arguments, or nullptr if there is none. Allocates no memory. The
  // pointer is valid until the next call of a member function.
  Value* find(const RunTensors& tensors) {
    if (entries_.empty()) return nullptr;
    if (matches(entries_.front(), tensors)) return &entries_.front().value;
    const auto found = lookUp(tensors);
    if (found == entries_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found);
    return &entries_.front().value;
  }
  // Returns the same value as find(), but the look-up does not count as a use of the value.
  const Value* peek(const RunTensors& tensors) {
    if (!entries_.empty() && matches(entries_.front(), tensors)) return &entries_.front().value;
    const auto found = lookUp(tensors);
    return found == entries_.end() ? nullptr : &found->value;
  }

  // Adds a value of `bytes` bytes. `late` has the ranges of the late inputs (Plan::late). The value
  // stays in the cache even if it alone exceeds the limit. `dropped` receives the values that no
  // longer fit. The caller can then destroy them after it has released its lock.
  void add(const RunTensors& tensors, const std::map<int32_t, LateRange>& late, Value value,
           int64_t bytes, std::vector<Value>& dropped) {
    const size_t hash = RunKey::hashOf(tensors);
    entries_.push_front(
        {hash, RunKey(tensors), scalars_.ranges(tensors.inputs, late), std::move(value), bytes});
    index_.emplace(hash, entries_.begin());
    bytes_ += bytes;
    while (entries_.size() > 1 && (entries_.size() > limits_.most || bytes_ > limits_.bytes)) {
      dropped.push_back(erase(std::prev(entries_.end())));
      ++evictions_;
    }
  }

  // Moves all values for which `condition` holds to `dropped`.
  template <class Condition>
  void eraseIf(const Condition& condition, std::vector<Value>& dropped) {
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      const auto next = std::next(entry);
      if (condition(entry->value)) dropped.push_back(erase(entry));
      entry = next;
    }
  }

  // Returns how many values were dropped because the cache was full.
  int64_t evictions() const { return evictions_; }

 private:
  struct Entry {
    size_t hash;
    RunKey key;
    std::vector<LateRange> scalars;  // SizeInputs::ranges()
    Value value;
    int64_t bytes;
  };
  using Entries = std::list<Entry>;  // most recently used first

  typename Entries::iterator lookUp(const RunTensors& tensors) {
    const auto [begin, end] = index_.equal_range(RunKey::hashOf(tensors));
    for (auto entry = begin; entry != end; ++entry) {
      if (matches(*entry->second, tensors)) return entry->second;
    }
    return entries_.end();
  }
  // Compares the scalars first, because many entries may differ only in them.
  bool matches(const Entry& entry, const RunTensors& tensors) const {
    return (scalars_.size() == 0 || scalars_.areWithin(entry.scalars, tensors.inputs)) &&
           entry.key.matches(tensors);
  }
  Value erase(typename Entries::iterator entry) {
    const auto [begin, end] = index_.equal_range(entry->hash);
    index_.erase(std::find_if(begin, end, [&](const auto& each) { return each.second == entry; }));
    bytes_ -= entry->bytes;
    Value value = std::move(entry->value);
    entries_.erase(entry);
    return value;
  }

  SizeInputs scalars_;
  Limits limits_;
  Entries entries_;
  std::unordered_multimap<size_t, typename Entries::iterator> index_;  // by hash
  int64_t bytes_ = 0;
  int64_t evictions_ = 0;
};

// Describes the tensors of a run of the program in the form that makePlan() takes. If a
// preallocated tensor has no data (nullptr), its output is not preallocated. Empty lists in the
// descriptor of a preallocated output are filled: `alloc` with the sizes, `strides` with the
// row-major strides of `alloc`, and `offset` with zeros. Exception: an empty `global` remains
// empty, and the plan then does not check the unsharded sizes. Throws UserError if there are more
// preallocated tensors than outputs, or if a preallocated output breaks one of these rules:
// - It is in device memory.
// - The lists of its descriptor, except `global`, have one element per axis.
// - Each axis with several elements has a positive stride.
// - Its elements do not overlap.
// - Its address is a multiple of the size of an element.
GivenTensors givenTensors(const Program& program, const RunTensors& tensors);

// Returns the positions of the donated inputs, and which outputs are preallocated. Throws UserError
// if `donated` contains a number that is no input of the run, or an input in host memory.
MemoryReuse reuseOf(const RunTensors& tensors);

}  // namespace heddle::host
