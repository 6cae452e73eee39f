#include <algorithm>
#include <boost/container/small_vector.hpp>

#include "comm/operation.h"
#include "host/lower/lower_all_to_all.h"
#include "host/program/visit.h"
#include "host/unroll/check_operands.h"
#include "host/unroll/unroller.h"
#include "host/unroll/view.h"
#include "ir/base/check.h"
#include "ir/graph/verify.h"

namespace heddle::host {

void Unroller::define(SlotId id, SharedView view) {
  if (Frame* branch = innermostBranch()) {
    branch->before.emplace(id, views_.at(id));  // keeps the view from before the branch
  }
  branched_.erase(id);
  views_.at(id) = std::move(view);
}

const SharedView& Unroller::tensor(SlotId id) {
  HEDDLE_USER_CHECK(!slot(id).is_scalar, "%{} is a scalar", slot(id).name);
  const SharedView& view = views_.at(id);
  HEDDLE_USER_CHECK(view != nullptr, "%{} is used before it is defined{}", slot(id).name,
                    undefinedReason(id));
  return view;
}

void Unroller::readScalar(UnrolledStep& step, SlotId id) {
  HEDDLE_USER_CHECK(slot(id).is_scalar, "%{} is not a scalar", slot(id).name);
  HEDDLE_USER_CHECK(!slot(id).isList(), "%{} is a list", slot(id).name);
  HEDDLE_USER_CHECK(scalars_.count(id) > 0, "%{} is used before it is defined{}", slot(id).name,
                    undefinedReason(id));
  step.inputs.appendEmpty();
  step.scalar_inputs.push_back(registerOf(id));
}

void Unroller::read(UnrolledStep& step, SlotId id) {
  if (slot(id).is_scalar) return readScalar(step, id);
  step.inputs.push_back(tensor(id));
  step.scalar_inputs.emplace_back();
}

void Unroller::operands(UnrolledStep& step, const std::vector<SlotId>& inputs,
                        const std::vector<SlotId>& outputs) {
  step.inputs.reserve(inputs.size());
  step.outputs.reserve(outputs.size());
  step.scalar_inputs.reserve(inputs.size());
  for (SlotId id : inputs) read(step, id);
  for (SlotId id : outputs) write(step, id);
}

void Unroller::writeScalar(UnrolledStep& step, SlotId id) {
  HEDDLE_USER_CHECK(slot(id).is_scalar, "%{} is not a scalar", slot(id).name);
  if (scalars_.insert(id).second) {
    if (Frame* branch = innermostBranch()) branch->new_scalars.insert(id);
  }
  branched_.erase(id);
  step.scalar_out = registerOf(id);
}

// Resolves the slots of the instruction to views and registers. Checks operands after all views of
// the step are known, because a check compares views with each other.
void Unroller::fill(UnrolledStep& step, const Op& op) {
  std::visit(
      Overloaded{
          [&](const Allocate& x) { allocate(step, x); },
          [&](const Free& x) {
            read(step, x.slot);
            valuesIn(step.inputs.front().buffer).free = unrolled_.steps.size();
          },
          [&](const Alias& x) { alias(step, x); },
          [&](const Evaluate& x) { evaluate(step, x); },
          [&](const LaunchKernel& x) {
            operands(step, x.inputs, x.outputs);
            const Fusion& segment = program_.kernels.at(x.kernel).segment;
            checkLaunch(segment, step);
            checkSizesInside(x.kernel, step);
          },
          [&](const CallLibrary& x) {
            operands(step, x.inputs, x.outputs);
            checkLibrary(program_, x, step);
          },
          [&](const Copy& x) {
            operands(step, {x.in}, {x.out});
            checkCopy(step);
          },
          [&](const Communicate& x) { communicate(step, x); },
          [&](const Send& x) {
            read(step, x.slot);
            peer(step, x.peer, x.team);
          },
          [&](const Recv& x) {
            write(step, x.slot);
            peer(step, x.peer, x.team);
          },
          [](const GroupBegin&) {},
          [](const GroupEnd&) {},
          [](const Wait&) {},
          [](const RecordEvent&) {},
          [](const WaitEvent&) {},
          [&](const ReadBack& x) {
            read(step, x.in);
            const Slot& out = slot(x.out);
            const auto size = [&](const IterDomain& axis) { return scope_.evaluate(axis.extent); };
            checkReadBack(slot(x.in), step, out.isList() ? size(out.tensor.domain.front()) : 1);
            writeScalar(step, x.out);
          },
          [](const For&) {},  // instruction() handles For and If
          [](const If&) {},
          [](const Call& x) {
            HEDDLE_CHECK(false, "a call of {} in an unrolled program", x.program);
          },
          [&](const Check& x) { read(step, x.slot); },
          [&](const Print& x) { read(step, x.slot); },
      },
      op);
}

void Unroller::checkSizesInside(KernelId kernel, const UnrolledStep& step) {
  const Fusion& segment = program_.kernels.at(kernel).segment;
  std::optional<bool>& needs_values = needs_values_[kernel];
  if (!needs_values) {
    needs_values = !segment.guards.empty() || !hasOnlySizesOfOperands(segment);
  }
  if (!*needs_values) return;
  boost::container::small_vector<int64_t, 32> sizes;
  for (const ViewList* views : {&step.inputs, &step.outputs}) {
    for (const View& view : *views) {
      sizes.push_back(static_cast<int64_t>(view.desc.rank()));
      sizes.insert(sizes.end(), view.desc.global.begin(), view.desc.global.end());
    }
  }
  std::vector<int64_t>& checked = checked_sizes_[kernel];
  if (std::ranges::equal(sizes, checked)) return;
  try {
    SizeBindings own;
    const SizeBindings& inside = sizesInside(segment, step, scope_.values(), own);
    checkSizes(segment, inside);
    checkGuards(knownGuards(segment, inside), inside);
  } catch (const UserError& error) {
    userErrorWith(error.code(), "kernel {}: {}", segment.name, error.what());
  }
  checked.assign(sizes.begin(), sizes.end());
}

void Unroller::allocate(UnrolledStep& step, const Allocate& x) {
  HEDDLE_USER_CHECK(!slot(x.out).is_scalar, "%{} is a scalar", slot(x.out).name);
  TensorDesc desc = scope_.describe(slot(x.out));
  const auto layout = request_.layouts.find(x.out);
  if (layout != request_.layouts.end() && layout->second.sizes == desc.sizes) {
    desc.alloc = layout->second.alloc;
    desc.strides = layout->second.strides;
  }
  const BufferId buffer = unrolled_.buffers.push_back(
      {Buffer::Origin::Allocated, -1, desc.allocBytes(), slot(x.out).name});
  define(x.out, {buffer, 0, std::move(desc)});
  write(step, x.out);
}

void Unroller::alias(UnrolledStep& step, const Alias& x) {
  read(step, x.in);
  View view = makeView(x, slot(x.out), slot(x.in), *tensor(x.in), scope_);
  define(x.out, std::move(view));
  write(step, x.out);
}

void Unroller::evaluate(UnrolledStep& step, const Evaluate& x) {
  const DType dtype = slot(x.out).tensor.dtype;
  std::visit(Overloaded{
                 [&](const Size& size) { step.known = roundTo(dtype, scope_.evaluate(size)); },
                 [&](const Scalar& value) { step.known = roundTo(dtype, value); },
                 [&](const Evaluate::Apply& apply) {
                   for (SlotId id : apply.args) readScalar(step, id);
                 },
             },
             x.expression);
  writeScalar(step, x.out);
}

int64_t Unroller::rankInTeam(const Size& value, std::string_view what, int64_t team_size) const {
  const int64_t rank = scope_.evaluate(value);
  HEDDLE_USER_CHECK(rank >= 0 && rank < team_size, "{} {} = {} in a team of {}", what, value.str(),
                    rank, team_size);
  return rank;
}

void Unroller::peer(UnrolledStep& step, const Size& peer, const Team& team) {
  step.peer = rankInTeam(peer, "peer", scope_.teamSize(team));
  const View& view = step.inputs.empty() ? step.outputs.front() : step.inputs.front();
  checkDense(view, "a send or receive");
  checkPosted(step);
}

// Throws UserError if an operand of a post (a send, a receive or a collective) is an input of the
// program whose memory layout differs from its type. The reasons:
// - A post covers the complete allocation. The ranks of a job check that their posts match, but not
//   again for tensors with the same sizes and another layout. The length of a post must therefore
//   depend only on the program and the sizes.
// - The rank that receives the data relies on the memory order.
void Unroller::checkPosted(const UnrolledStep& step) const {
  if (elsewhere_.empty()) return;
  for (const ViewList* views : {&step.inputs, &step.outputs}) {
    for (const View& view : *views) {
      const auto wanted = elsewhere_.find(view.buffer);
      if (wanted == elsewhere_.end()) continue;
      const Buffer& buffer = unrolled_.buffers[view.buffer];
      const TensorDesc& given = request_.inputs[buffer.input];
      userError(
          "input %{} is itself sent or received, so it must be allocated as inputDesc() says: {} "
          "with strides {}, got {} with {}",
          buffer.name, str(wanted->second.alloc), str(wanted->second.strides), str(given.alloc),
          str(given.strides));
    }
  }
}

// Returns whether the root of a gather or scatter is outside of the mesh whose ranks hold the
// parts. The result is the same on all ranks, because all ranks know the mesh.
bool Unroller::rootIsApart(const Communicate& x, const std::vector<int64_t>& team) const {
  const bool gathers = x.kind == comm::CollectiveKind::Gather;
  if (!gathers && x.kind != comm::CollectiveKind::Scatter) return false;
  const std::optional<Sharding>& parts = slot(gathers ? x.in : x.out).tensor.sharding;
  const int64_t root = team[scope_.evaluate(x.root.value())];
  return parts && scope_.meshes().at(parts->mesh).positionOf(root) < 0;
}

// Returns the number of elements that each rank of the slot's mesh allocates. Returns nullopt if
// the slot has no sharding, because its sizes may then depend on the rank. Also returns nullopt if
// the number is larger than any memory.
std::optional<int64_t> Unroller::allocatedByType(SlotId id) const {
  const Slot& named = slot(id);
  if (!named.tensor.sharding) return std::nullopt;
  const std::vector<Size> blocks = blockAllocation(named.tensor, scope_.meshes());
  constexpr int64_t kMost = int64_t{1} << 50;
  int64_t count = 1;
  for (int64_t size : scope_.evaluate(named.alloc.empty() ? blocks : named.alloc)) {
    if (__builtin_mul_overflow(count, size, &count) || count > kMost) return std::nullopt;
  }
  return count;
}

// First determines whether this rank sends and whether it receives. Then resolves only the views
// that this rank needs. The reason: a slot that only other ranks use may have no view here.
void Unroller::communicate(UnrolledStep& step, const Communicate& x) {
  const std::vector<int64_t> team = scope_.members(x.team);
  const auto size = static_cast<int64_t>(team.size());
  if (x.root) step.peer = rankInTeam(*x.root, "root", size);
  if (x.kind == comm::CollectiveKind::Barrier) return;
  const int64_t me = std::find(team.begin(), team.end(), scope_.rank()) - team.begin();
  const bool root = me == step.peer;
  const bool one_way = x.kind == comm::CollectiveKind::Send;
  HEDDLE_USER_CHECK(!one_way || size == 2,
                    "send in a team of {}: it needs a team of two ranks, the root and the receiver",
                    size);
  step.root_apart = rootIsApart(x, team);
  TeamPosition position{me, size, size - (step.root_apart ? 1 : 0), {}};
  for (const auto& [in, out] : x.pairs()) {
    bool sends = one_way ? root : comm::hasSend(x.kind, root);
    bool receives = one_way ? !root : comm::hasRecv(x.kind, root);
    // If the result's mesh does not contain the root of a broadcast, the root only sends.
    const bool outside = root && x.kind == comm::CollectiveKind::Broadcast &&
                         !viewOf(out).buffer.valid() && !scope_.describe(slot(out)).held;
    if (outside || (root && step.root_apart)) {
      (x.kind == comm::CollectiveKind::Gather ? sends : receives) = false;
    }
    step.scalar_inputs.emplace_back();
    sends ? step.inputs.push_back(tensor(in)) : step.inputs.appendEmpty();
    receives ? step.outputs.push_back(tensor(out)) : step.outputs.appendEmpty();
    const bool one_side = sends != receives;
    position.elsewhere.push_back(one_side ? allocatedByType(sends ? out : in) : std::nullopt);
  }
  if (x.kind == comm::CollectiveKind::AllToAllV) readCounts(step, x, size);
  // The counts of an all-to-all-v come from its lists, not from the allocation.
  if (x.kind != comm::CollectiveKind::AllToAllV) checkPosted(step);
  checkCollective(x, step, position);
}

void Unroller::readCounts(UnrolledStep& step, const Communicate& x, int64_t team_size) {
  for (SlotId id : {x.send_counts.value(), x.recv_counts.value()}) {
    const int64_t counts = scope_.evaluate(slot(id).tensor.domain.front().extent);
    HEDDLE_USER_CHECK(counts == team_size, "%{} has {} counts for a team of {}", slot(id).name,
                      counts, team_size);
    HEDDLE_USER_CHECK(scalars_.count(id) > 0, "%{} is used before it is defined{}", slot(id).name,
                      undefinedReason(id));
    step.inputs.appendEmpty();
    step.scalar_inputs.push_back(registerOf(id));
  }
}

}  // namespace heddle::host
