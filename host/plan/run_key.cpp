#include "host/plan/run_key.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>

#include "host/lower/lower_reuses.h"
#include "host/plan/bind_inputs.h"
#include "host/unroll/overlap.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

// Returns the descriptor of a preallocated output with its empty lists filled, except `global`.
// Throws UserError if the descriptor breaks a rule of givenTensors(). `output` names the output in
// errors.
TensorDesc completeDesc(TensorDesc desc, const std::string& output) {
  if (desc.alloc.empty()) desc.alloc = desc.sizes;
  if (desc.strides.empty() && desc.alloc.size() == desc.rank()) {
    desc.strides = stridesFor(desc.alloc, rowMajor(desc.rank()));
  }
  if (desc.offset.empty()) desc.offset.assign(desc.rank(), 0);
  HEDDLE_USER_CHECK_CODE(ShapeMismatch,
                         desc.alloc.size() == desc.rank() && desc.strides.size() == desc.rank() &&
                             desc.offset.size() == desc.rank(),
                         "{}: the lists of its descriptor differ in length", output);
  for (size_t axis = 0; axis < desc.rank(); ++axis) {
    HEDDLE_USER_CHECK_CODE(ShapeMismatch, desc.sizes[axis] <= 1 || desc.strides.at(axis) > 0,
                           "{}: axis {} of size {} has the stride {}, which must be "
                           "positive",
                           output, axis, desc.sizes[axis], desc.strides.at(axis));
  }
  HEDDLE_USER_CHECK_CODE(ShapeMismatch, !mayOverlapItself(desc),
                         "{}: its elements overlap, because it has the sizes {} and "
                         "the strides {}",
                         output, str(desc.sizes), str(desc.strides));
  return desc;
}

// Returns the alignment on which the plan depends. A tensor in host memory is passed by value, so
// its address does not matter. The nullptr of a tensor without elements counts as aligned.
int32_t alignmentOf(const Tensor& tensor) {
  if (tensor.in_host_memory) return codegen::kFullAlignment;
  return codegen::alignmentOf(reinterpret_cast<uintptr_t>(tensor.data));
}

// One word holds the lengths of all lists of a descriptor, with this many bits for each length. A
// descriptor with a list of kMostAxes or more elements matches no key.
constexpr size_t kLengthBits = 12;
constexpr size_t kMostAxes = (size_t{1} << kLengthBits) - 1;

constexpr int64_t kScalar = -1;  // stands for an input that is a scalar
constexpr int64_t kNotPreallocated = -2;

int64_t headOf(const Tensor& tensor) {
  return static_cast<int64_t>(tensor.desc.dtype) << 16 | int64_t{alignmentOf(tensor)} << 8 |
         int64_t{tensor.in_host_memory} << 1 | int64_t{tensor.desc.held};
}

template <class Visit>
void forEachList(const TensorDesc& desc, const Visit& visit) {
  visit(desc.sizes);
  visit(desc.strides);
  visit(desc.alloc);
  visit(desc.global);
  visit(desc.offset);
}

// Returns the lengths of all lists of a descriptor, or -1 if one of them is too long.
int64_t lengthsOf(const TensorDesc& desc) {
  int64_t lengths = 0;
  bool fits = true;
  forEachList(desc, [&](const std::vector<int64_t>& list) {
    fits = fits && list.size() < kMostAxes;
    lengths = lengths << kLengthBits | static_cast<int64_t>(list.size());
  });
  return fits ? lengths : -1;
}

// Returns lengthsOf(desc), but faster if all lists have the same length. `uniform` receives whether
// this is the case.
inline int64_t quickLengths(const TensorDesc& desc, bool& uniform) {
  constexpr int64_t kOnes = 0x001'001'001'001'001;
  const size_t rank = desc.sizes.size();
  uniform = desc.strides.size() == rank && desc.alloc.size() == rank &&
            desc.global.size() == rank && desc.offset.size() == rank && rank < kMostAxes;
  return uniform ? static_cast<int64_t>(rank) * kOnes : lengthsOf(desc);
}

// Visits the parts of a key in order: single numbers, and lists of numbers. Does not visit the
// three counts with which a key begins: how many inputs, preallocated tensors and donated inputs
// there are.
template <class Visit>
void forEachPart(const RunTensors& tensors, const Visit& visit) {
  const auto tensor = [&](const Tensor& t) {
    visit(headOf(t));
    visit(lengthsOf(t.desc));
    forEachList(t.desc, visit);
  };
  for (const Argument& input : tensors.inputs) {
    const auto* given = std::get_if<Tensor>(&input);
    given == nullptr ? visit(kScalar) : tensor(*given);
  }
  for (const Tensor& given : tensors.preallocated) {
    given.data == nullptr ? visit(kNotPreallocated) : tensor(given);
  }
  for (size_t input : tensors.donated) visit(static_cast<int64_t>(input));
}

}  // namespace

RunKey::RunKey(const RunTensors& tensors) {
  struct Append {
    std::vector<int64_t>& to;
    void operator()(int64_t number) const { to.push_back(number); }
    void operator()(const std::vector<int64_t>& list) const {
      to.insert(to.end(), list.begin(), list.end());
    }
  } append{numbers_};
  append(static_cast<int64_t>(tensors.inputs.size()));
  append(static_cast<int64_t>(tensors.preallocated.size()));
  append(static_cast<int64_t>(tensors.donated.size()));
  forEachPart(tensors, append);
}

// Compares in the order in which the constructor stores the numbers. Every run except that of a
// PreparedRun compares all its tensors, so the comparison must be fast. Usually all lists of a
// descriptor have the same length. One loop then compares all lists.
bool RunKey::matches(const RunTensors& tensors) const {
  const int64_t* at = numbers_.data();
  const auto isNext = [&](int64_t number) { return *at++ == number; };
  // Requires that the key contains a list of the same length at this position.
  const auto areNext = [&](const std::vector<int64_t>& list) {
    int64_t differing = 0;
    for (int64_t number : list) differing |= number ^ *at++;
    return differing == 0;
  };
  const auto tensor = [&](const Tensor& given) {
    const TensorDesc& desc = given.desc;
    bool uniform = false;
    const int64_t lengths = quickLengths(desc, uniform);
    if (!isNext(headOf(given)) || lengths < 0 || !isNext(lengths)) return false;
    if (!uniform) {
      return areNext(desc.sizes) && areNext(desc.strides) && areNext(desc.alloc) &&
             areNext(desc.global) && areNext(desc.offset);
    }
    const size_t rank = desc.sizes.size();
    int64_t differing = 0;
    for (size_t axis = 0; axis < rank; ++axis) {
      differing |= (desc.sizes[axis] ^ at[axis]) | (desc.strides[axis] ^ at[rank + axis]) |
                   (desc.alloc[axis] ^ at[2 * rank + axis]) |
                   (desc.global[axis] ^ at[3 * rank + axis]) |
                   (desc.offset[axis] ^ at[4 * rank + axis]);
    }
    at += 5 * rank;
    return differing == 0;
  };
  if (!isNext(static_cast<int64_t>(tensors.inputs.size()))) return false;
  if (!isNext(static_cast<int64_t>(tensors.preallocated.size()))) return false;
  if (!isNext(static_cast<int64_t>(tensors.donated.size()))) return false;
  for (const Argument& input : tensors.inputs) {
    const auto* given = std::get_if<Tensor>(&input);
    if (!(given == nullptr ? isNext(kScalar) : tensor(*given))) return false;
  }
  for (const Tensor& given : tensors.preallocated) {
    if (!(given.data == nullptr ? isNext(kNotPreallocated) : tensor(given))) return false;
  }
  return std::all_of(tensors.donated.begin(), tensors.donated.end(),
                     [&](size_t input) { return isNext(static_cast<int64_t>(input)); });
}

size_t RunKey::hashOf(const RunTensors& tensors) {
  struct Combine {
    size_t& hash;
    void operator()(int64_t number) const { boost::hash_combine(hash, number); }
    void operator()(const std::vector<int64_t>& list) const {
      boost::hash_range(hash, list.begin(), list.end());
    }
  };
  size_t hash = tensors.inputs.size();
  Combine combine{hash};
  forEachPart(tensors, combine);
  return hash;
}

GivenTensors givenTensors(const Program& program, const RunTensors& tensors) {
  const std::vector<Tensor>& preallocated = tensors.preallocated;
  HEDDLE_USER_CHECK(preallocated.size() <= program.outputs.size(),
                    "{} preallocated tensors for {} outputs", preallocated.size(),
                    program.outputs.size());
  GivenTensors given;
  for (const Argument& input : tensors.inputs) {
    const auto* tensor = std::get_if<Tensor>(&input);
    given.by_value.push_back(tensor != nullptr && tensor->in_host_memory);
    given.input_alignments.push_back(tensor == nullptr ? codegen::kFullAlignment
                                                       : alignmentOf(*tensor));
  }
  for (size_t i = 0; i < preallocated.size(); ++i) {
    given.output_alignments.push_back(alignmentOf(preallocated[i]));
    given.preallocated.emplace_back();
    if (preallocated[i].data == nullptr) continue;
    const std::string output =
        fmt::format("preallocated output {} (%{})", i, outputName(program, i));
    HEDDLE_USER_CHECK(!preallocated[i].in_host_memory,
                      "{} is in host memory, expected memory of the device", output);
    given.preallocated.back() = completeDesc(preallocated[i].desc, output);
    const DType dtype = preallocated[i].desc.dtype;
    HEDDLE_USER_CHECK(isAtElement(preallocated[i]),
                      "{}: its address is not a multiple of {} bytes, the size "
                      "of an element of {}",
                      output, sizeOf(dtype), name(dtype));
  }
  return given;
}

MemoryReuse reuseOf(const RunTensors& tensors) {
  for (size_t i : tensors.donated) {
    HEDDLE_USER_CHECK(i < tensors.inputs.size(),
                      "there is no input {} to donate: the run has {} inputs", i,
                      tensors.inputs.size());
    const auto* tensor = std::get_if<Tensor>(&tensors.inputs[i]);
    HEDDLE_USER_CHECK(tensor == nullptr || !tensor->in_host_memory,
                      "input {} is in host memory and cannot be donated", i);
  }
  MemoryReuse reuse;
  reuse.donated = tensors.donated;
  for (const Tensor& output : tensors.preallocated) {
    reuse.preallocated.push_back(output.data != nullptr);
  }
  return reuse;
}

}  // namespace heddle::host
