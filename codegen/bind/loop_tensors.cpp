#include "codegen/bind/loop_tensors.h"

#include <algorithm>
#include <utility>

#include "codegen/families/loops.h"

namespace heddle::codegen {
namespace {

// Returns which tensors of `all` are in `left`. Requires that SpaceTensor::base of each tensor in
// `left`, except the partial results, contains the index of the tensor in `all`. Partial results
// get the indices from `first_partial` on, in the order of `left`.
LoopTensors::Used usedOf(const Space& left, const Space& all, size_t first_partial) {
  LoopTensors::Used used;
  auto partial = static_cast<int>(first_partial);
  for (const SpaceTensor& tensor : left.tensors) {
    const bool is_partial = tensor.operand == LaunchStage::kWorkspace;
    used.tensors.push_back(is_partial ? partial++ : static_cast<int>(tensor.base));
  }
  for (const IndexedTensor& tensor : left.indexed) {
    const auto found = std::find_if(all.indexed.begin(), all.indexed.end(), [&](const auto& other) {
      return other.operand == tensor.operand;
    });
    used.indexed.push_back(static_cast<int>(found - all.indexed.begin()));
  }
  return used;
}

template <class Tensors>
void keep(const std::vector<int>& used, Tensors& tensors) {
  bool are_all = used.size() == tensors.size();
  for (size_t i = 0; are_all && i < used.size(); ++i) are_all = used[i] == static_cast<int>(i);
  if (are_all) return;
  Tensors left;
  for (int i : used) left.push_back(std::move(tensors[i]));
  tensors = std::move(left);
}

}  // namespace

// Numbers the tensors by SpaceTensor::base, drops unused tensors and splits the reduction in the
// same way as planKernel(). Then checks which numbers remain.
LoopTensors loopTensors(const Computation& computation, Space space) {
  for (size_t i = 0; i < space.tensors.size(); ++i) {
    space.tensors[i].base = static_cast<int64_t>(i);
  }
  const size_t first_partial = space.tensors.size();
  LoopTensors result;
  LoopRequest whole;
  whole.space = space;
  whole.computation = computation;
  dropUnusedTensors(whole);
  result.whole = usedOf(whole.space, space, first_partial);
  result.partials = partialTypes(computation.accumulators);
  if (result.partials.empty()) return result;
  LoopPlan d;
  d.computation = computation;
  d.first.computation = computation;
  d.first.schedule.splits = 2;
  divideIntoRanges(d, space, "");
  dropUnusedTensors(d.first);
  result.first = usedOf(d.first.space, space, first_partial);
  result.second = usedOf(d.second.space, space, first_partial);
  return result;
}

void keepOnly(const LoopTensors::Used& used, Space& space) {
  keep(used.tensors, space.tensors);
  keep(used.indexed, space.indexed);
}

}  // namespace heddle::codegen
