#include "codegen/bind/facts.h"

#include "codegen/frame/argument_value.h"

namespace heddle::codegen {
namespace {

enum class StrideClass : char { Zero, One, Other };
char classOf(int64_t stride) {
  return static_cast<char>(stride == 0   ? StrideClass::Zero
                           : stride == 1 ? StrideClass::One
                                         : StrideClass::Other);
}

void appendFlag(bool flag, std::string& facts) { facts += static_cast<char>(flag); }

void appendNumber(int64_t number, std::string& facts) {
  facts.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

}  // namespace

void appendClasses(const Space& space, std::string& facts) {
  facts += static_cast<char>(space.kept);
  facts += static_cast<char>(space.extents.size());
  appendNumber(static_cast<int64_t>(space.tensors.size()), facts);
  for (const SpaceTensor& tensor : space.tensors) {
    for (int64_t stride : tensor.strides) facts += classOf(stride);
  }
  for (const SpaceCoordinate& c : space.coordinates) facts += static_cast<char>(c.axis);
  for (const IndexedTensor& tensor : space.indexed) {
    for (int64_t stride : tensor.strides) facts += classOf(stride);
  }
}

void appendFacts(const EntryNumbers& entry, std::string& facts) {
  const FrameNumbers numbers = entry.frame();
  const Schedule& s = entry.schedule;
  appendClasses(entry.space, facts);
  facts += static_cast<char>(s.kind);
  appendFlag(s.exact, facts);
  appendFlag(s.streams, facts);
  appendFlag(s.shifted, facts);
  appendFlag(s.overlaps, facts);
  appendFlag(s.target == Target::Cuda && needsWideIndex(numbers), facts);
  for (int32_t number : {s.lanes, s.unroll, s.block, s.reduce_threads}) {
    facts.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  for (const SpaceTensor& tensor : entry.space.tensors) {
    appendFlag(hasAlignedItems(tensor, numbers), facts);
  }
}

void appendFacts(const RowCandidate& candidate, std::string& facts) {
  const RowLayout& layout = candidate.layout;
  for (bool flag : {candidate.looped, candidate.ahead, layout.exact, layout.shifted, layout.full,
                    layout.bundled, layout.streams, layout.divided.parts > 0,
                    layout.divided.streams, layout.divided.reversed, layout.row_blocks > 1}) {
    appendFlag(flag, facts);
  }
  for (int64_t number :
       {int64_t{layout.vector}, int64_t{layout.registers}, int64_t{layout.threads},
        int64_t{layout.rows}, int64_t{layout.cluster}, int64_t{layout.shared_bytes},
        layout.capacity, int64_t{layout.column_threads}, static_cast<int64_t>(candidate.variant)}) {
    appendNumber(number, facts);
  }
}

void appendFacts(const SquarePlan& plan, std::string& facts) {
  appendNumber(plan.layout.edge, facts);
  appendNumber(plan.layout.vector, facts);
  appendFlag(plan.layout.exact, facts);
  appendFlag(plan.layout.full, facts);
  appendFlag(plan.layout.banded, facts);
  for (bool aligned : plan.aligned) appendFlag(aligned, facts);
}

}  // namespace heddle::codegen
