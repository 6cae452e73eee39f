#include "tools/heddle/partial.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "comm/communicator.h"
#include "ir/base/check.h"
#include "ir/ops/op.h"

namespace heddle::tools {
namespace {

// Returns part number `distance` of a float element `whole`. The reduction of all parts gives
// `whole`. Only parts 0 and 1 may differ from the other parts. For example, the parts for a sum are
// 2 * whole, -whole, 0, 0, ... If 2 * whole is not finite, they are whole, 0, 0, ...
double floatPart(ReduceOp op, DType dtype, double whole, int64_t distance) {
  const double twice = toDouble(roundTo(dtype, 2 * whole));
  switch (op) {
    case ReduceOp::Sum:
      if (!std::isfinite(twice)) return distance == 0 ? whole : 0;
      return distance == 0 ? twice : (distance == 1 ? -whole : 0);
    case ReduceOp::Avg:
      if (!std::isfinite(twice)) return whole;
      return distance == 0 ? twice : (distance == 1 ? 0 : whole);
    case ReduceOp::Prod:
      return distance == 0 ? -whole : (distance == 1 ? -1 : 1);
    case ReduceOp::Max:
      return distance == 0 ? whole : whole - 1;
    case ReduceOp::Min:
      return distance == 0 ? whole : whole + 1;
  }
  return whole;
}

// Returns one part of an integer element, like floatPart(). Sums and products wrap.
int64_t integerPart(ReduceOp op, DType dtype, int64_t whole, int64_t distance) {
  const auto bits = static_cast<uint64_t>(whole);
  switch (op) {
    case ReduceOp::Sum:
      return static_cast<int64_t>(distance == 0 ? 2 * bits : (distance == 1 ? 0 - bits : 0));
    case ReduceOp::Prod:
      return static_cast<int64_t>(distance == 0 ? 0 - bits : (distance == 1 ? ~uint64_t{0} : 1));
    case ReduceOp::Max:
      return distance == 0 || identityOf(op, dtype) == Scalar(whole) ? whole : whole - 1;
    case ReduceOp::Min:
      return distance == 0 || identityOf(op, dtype) == Scalar(whole) ? whole : whole + 1;
    case ReduceOp::Avg:
      break;
  }
  userError("partial(avg) of {} needs a float type", name(dtype));
}

Scalar partOfElement(ReduceOp op, DType dtype, const Scalar& whole, int64_t distance) {
  if (std::holds_alternative<bool>(whole)) {
    return distance == 0 ? whole : Scalar(op == ReduceOp::Prod || op == ReduceOp::Min);
  }
  if (const int64_t* integer = std::get_if<int64_t>(&whole)) {
    return roundTo(dtype, integerPart(op, dtype, *integer, distance));
  }
  return roundTo(dtype, floatPart(op, dtype, std::get<double>(whole), distance));
}

// Returns part number `position` of `parts` parts of a tensor along one mesh axis. Each element
// gives its part 0 to a different rank than the element before it.
HostTensor partAlong(const HostTensor& whole, ReduceOp op, int64_t position, int64_t parts) {
  HostTensor part(whole.dtype, whole.sizes);
  for (int64_t i = 0; i < whole.numel(); ++i) {
    const int64_t distance = (position + parts - i % parts) % parts;
    part.set(i, partOfElement(op, whole.dtype, whole.at(i), distance));
  }
  return part;
}

}  // namespace

std::optional<PartialState> partialOf(const host::Program& program, host::SlotId slot) {
  const auto& sharding = program.slots.at(slot).tensor.sharding;
  if (!sharding || !sharding->isPartial()) return std::nullopt;
  PartialState state{*sharding, program.meshes.at(sharding->mesh)};
  return state;
}

std::string describe(const PartialState& state) {
  std::vector<std::string> parts;
  for (const Sharding::Partial& each : state.sharding.partial) {
    parts.push_back(fmt::format("{} over {}", name(each.op), name(each.axis)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

HostTensor partOf(const HostTensor& whole, const PartialState& state, int64_t rank) {
  HostTensor part = whole;
  if (state.mesh.positionOf(rank) < 0) return part;
  for (const Sharding::Partial& each : state.sharding.partial) {
    const int64_t parts = state.mesh.size(each.axis);
    if (parts == 1) continue;
    part = partAlong(part, each.op, state.mesh.coordinate(rank, each.axis), parts);
  }
  return part;
}

void reduceParts(std::vector<Block>& blocks, const PartialState& state) {
  const auto& partial = state.sharding.partial;
  for (auto each = partial.rbegin(); each != partial.rend(); ++each) {
    std::vector<Block> reduced;
    for (const Block& first : blocks) {
      const std::vector<int64_t> team = state.mesh.team(first.rank, {each->axis});
      if (team.front() != first.rank) continue;
      std::vector<const void*> parts;
      for (int64_t rank : team) {
        const auto found = std::find_if(blocks.begin(), blocks.end(),
                                        [&](const Block& block) { return block.rank == rank; });
        HEDDLE_CHECK(found != blocks.end(), "no part of rank {}", rank);
        parts.push_back(found->data.data.get());
      }
      Block block{first.rank, first.offset, HostTensor(first.data.dtype, first.data.sizes)};
      comm::reduceOnHost(block.data.data.get(), parts, block.data.numel(), block.data.dtype,
                         each->op);
      reduced.push_back(std::move(block));
    }
    blocks = std::move(reduced);
  }
}

}  // namespace heddle::tools
