// The members of PlanBuilder for collectives, sends, receives, tokens and events.
#include <algorithm>

#include "host/plan/plan_builder.h"
#include "host/program/teams.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

int64_t allocCount(const TensorDesc& desc) {
  int64_t count = 1;
  for (int64_t size : desc.alloc) count *= size;
  return count;
}

// Throws UserError if the memory of a tensor has gaps, because an operation sends or receives
// contiguous bytes.
void checkDense(const TensorDesc& desc, const std::string& slot) {
  HEDDLE_USER_CHECK(allocCount(desc) == 0 || desc.allocElements() == allocCount(desc),
                    "the memory of %{} has gaps: sizes {}, strides {}", slot, str(desc.alloc),
                    str(desc.strides));
}

// Returns Operation::count of a collective (comm/communicator.h), computed from the allocated sizes
// of the views.
int64_t partOf(comm::CollectiveKind kind, const View& in, const View& out, int size) {
  if (kind == comm::CollectiveKind::AllToAllV) return 0;
  if (kind == comm::CollectiveKind::AllToAll) return allocCount(in.desc) / size;
  const bool in_has_all_parts =
      kind == comm::CollectiveKind::ReduceScatter || kind == comm::CollectiveKind::Scatter;
  return allocCount(in_has_all_parts || !in.buffer.valid() ? out.desc : in.desc);
}

}  // namespace

// Returns the communicator of this rank's team, or nullptr if this rank is outside of the team's
// mesh.
comm::Communicator* PlanBuilder::communicatorOf(const Team& team, const comm::Carrier& carrier) {
  std::vector<int> members = teamMembers(team, program_.meshes, unrolled_.rank, target_.ranks);
  if (members.empty()) return nullptr;
  comm::Communicator* communicator = &target_.communicators.of(members, carrier);
  members_.try_emplace(communicator, std::move(members), carrier);
  return communicator;
}

// Returns the index in Plan::teams of the members of a communicator, and adds them if necessary.
TeamId PlanBuilder::teamOf(comm::Communicator* communicator) {
  const std::vector<int>& members = members_.at(communicator).first;
  const auto found = std::find(plan_->teams.begin(), plan_->teams.end(), members);
  if (found == plan_->teams.end()) return plan_->teams.push_back(members);
  return TeamId(found - plan_->teams.begin());
}

// Returns whether the collective is also a barrier, that is, no rank completes it before all ranks
// of the team have begun it. `first` is the index of its first operation in Plan::operations.
bool PlanBuilder::isBarrier(comm::Communicator* communicator, int32_t first) const {
  using comm::CollectiveKind;
  const CollectiveKind kind = plan_->operations[first].kind;
  return communicator->size() > 1 &&
         (kind == CollectiveKind::Allreduce || kind == CollectiveKind::Allgather ||
          kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllToAll ||
          kind == CollectiveKind::Barrier);
}

// Emits a collective. unroll() has already checked the sizes. On a rank that only receives, the
// view of the input is empty. On a rank that only sends, the view of the output is empty.
void PlanBuilder::emit(const Communicate& op, const UnrolledStep& step) {
  comm::Communicator* communicator = communicatorOf(op.team, op.carrier);
  if (communicator == nullptr) return;
  if (op.kind == comm::CollectiveKind::Send || step.root_apart) {
    return emitOneWay(op, step, communicator);
  }
  const auto first = static_cast<int32_t>(plan_->operations.size());
  comm::Operation operation;
  operation.kind = op.kind;
  operation.reduce = op.reduce.value_or(ReduceOp::Sum);
  operation.root = static_cast<int>(step.peer);
  const auto post = [&](const Plan::OperationAddresses& addresses) {
    plan_->operations.push_back(operation);
    plan_->operation_addresses.push_back(addresses);
  };
  const std::vector<Communicate::Pair> pairs = op.pairs();
  for (size_t i = 0; i < pairs.size(); ++i) {
    const View& in = step.inputs.at(i);
    const View& out = step.outputs.at(i);
    Plan::OperationAddresses addresses = {addressOf(in), addressOf(out)};
    // If the root of a broadcast has no output, it receives into its input.
    if (op.kind == comm::CollectiveKind::Broadcast && !out.buffer.valid())
      addresses.recv = addresses.send;
    operation.dtype = slot(pairs[i].in).tensor.dtype;
    operation.count = partOf(op.kind, in, out, communicator->size());
    post(addresses);
  }
  if (pairs.empty()) post({});  // a barrier has no tensors
  emitCollective(communicator, first, op.stream);
  if (op.kind == comm::CollectiveKind::AllToAllV) emitCounts(step);
  emitRecord(op.token, op.stream);
}

// Emits a transfer from the root of a team of two, or a gather or scatter whose root has no part of
// its own. The root sends one part to each other rank, or receives one part from each.
void PlanBuilder::emitOneWay(const Communicate& op, const UnrolledStep& step,
                             comm::Communicator* communicator) {
  const bool to_root = op.kind == comm::CollectiveKind::Gather;
  const auto root = static_cast<int>(step.peer);
  const bool is_root = communicator->rank() == root;
  const bool sends = is_root != to_root;
  const View& view = sends ? step.inputs.at(0) : step.outputs.at(0);
  comm::Operation operation;
  operation.kind = sends ? comm::CollectiveKind::Send : comm::CollectiveKind::Recv;
  operation.dtype = view.desc.dtype;
  operation.count = allocCount(view.desc) / (is_root ? communicator->size() - 1 : 1);
  const int64_t bytes = operation.count * sizeOf(operation.dtype);
  const auto first = static_cast<int32_t>(plan_->operations.size());
  Address part = addressOf(view);
  for (int peer = 0; peer < communicator->size(); ++peer) {
    if (is_root ? peer == root : peer != root) continue;
    operation.peer = peer;
    plan_->operations.push_back(operation);
    plan_->operation_addresses.push_back({sends ? part : Address{}, sends ? Address{} : part});
    part.offset += bytes;
  }
  emitCollective(communicator, first, op.stream);
  emitRecord(op.token, op.stream);
}

// Adds the lists of counts to the latest step, an all-to-all-v.
void PlanBuilder::emitCounts(const UnrolledStep& step) {
  auto& posted = std::get<CollectiveStep>(plan_->steps.back());
  const int32_t ranks = posted.communicator->size();
  posted.counts = plan_->counts.push_back(
      {ranks, step.scalar_inputs.at(1), step.scalar_inputs.at(2), plan_->counts_size,
       allocCount(step.inputs[0].desc), allocCount(step.outputs[0].desc)});
  plan_->counts_size += 2 * ranks;
}

void PlanBuilder::emit(const Send& op, const UnrolledStep& step) {
  comm::Operation operation;
  operation.kind = comm::CollectiveKind::Send;
  const View& view = step.inputs.at(0);
  checkDense(view.desc, slot(op.slot).name);
  emitPeer(op.team, operation, addressOf(view), view, op.stream, op.token, step);
}

void PlanBuilder::emit(const Recv& op, const UnrolledStep& step) {
  comm::Operation operation;
  operation.kind = comm::CollectiveKind::Recv;
  const View& view = step.outputs.empty() ? step.inputs.at(0) : step.outputs[0];
  checkDense(view.desc, slot(op.slot).name);
  emitPeer(op.team, operation, addressOf(view), view, op.stream, op.token, step);
}

// Emits a send or a receive. Between GroupBegin and GroupEnd, the function only adds the operation
// to the group.
void PlanBuilder::emitPeer(const Team& team, comm::Operation operation, Address address,
                           const View& view, StreamId stream, const std::optional<TokenId>& token,
                           const UnrolledStep& step) {
  comm::Communicator* communicator = communicatorOf(team, {});
  if (communicator == nullptr) return;
  operation.count = allocCount(view.desc);
  operation.dtype = view.desc.dtype;
  operation.peer = static_cast<int>(step.peer);
  const auto first = static_cast<int32_t>(plan_->operations.size());
  plan_->operations.push_back(operation);
  const bool sends = operation.kind == comm::CollectiveKind::Send;
  plan_->operation_addresses.push_back({sends ? address : Address{}, sends ? Address{} : address});
  if (group_.open) {
    HEDDLE_USER_CHECK(group_.communicator == nullptr || group_.communicator == communicator,
                      "the operations of a group are on different teams");
    group_.communicator = communicator;
    group_.stream = stream;
    return;
  }
  emitCollective(communicator, first, stream);
  if (token) emitRecord(*token, stream);
}

void PlanBuilder::emit(const GroupBegin&, const UnrolledStep&) {
  group_ = {};
  group_.open = true;
  group_.first = static_cast<int32_t>(plan_->operations.size());
}

void PlanBuilder::emit(const GroupEnd& op, const UnrolledStep&) {
  group_.open = false;
  if (group_.communicator == nullptr) return;  // this rank posts no operation of the group
  emitCollective(group_.communicator, group_.first, group_.stream);
  emitRecord(op.token, group_.stream);
}

// Orders a post after the earlier posts on all other communicators. This is needed for a transport
// whose kernels occupy the GPU while they wait for other ranks. Without this order, two ranks could
// run the kernels of two communicators in different orders, and would wait for each other forever.
void PlanBuilder::orderAfterOtherTeams(comm::Communicator* communicator, StreamId stream) {
  // Each post is ordered after the post before it, so it is usually enough to wait for the latest
  // one. After a branch, which may have skipped the latest post, the stream waits for all earlier
  // posts.
  const size_t needed = branches_ || posted_.empty() ? 0 : posted_.size() - 1;
  for (size_t i = needed; i < posted_.size(); ++i) {
    if (posted_[i].communicator == communicator || posted_[i].stream == stream) continue;
    const DeviceEventId event = newEvent();
    emit(RecordStep{event, posted_[i].stream});
    emit(WaitStep{event, stream});
  }
  const Posted mine{communicator, stream};
  std::erase(posted_, mine);
  posted_.push_back(mine);
}

// Emits a step that posts all operations from index `first` in Plan::operations.
void PlanBuilder::emitCollective(comm::Communicator* communicator, int32_t first, StreamId stream) {
  if (communicator->isStreamOrdered()) {
    if (communicator->holdsDevice()) orderAfterOtherTeams(communicator, stream);
    auto& all = plan_->stream_ordered;
    if (std::find(all.begin(), all.end(), communicator) == all.end()) all.push_back(communicator);
  }
  plan_->communicates = true;
  const auto count = static_cast<int32_t>(plan_->operations.size()) - first;
  int64_t bytes = 0;
  for (size_t i = first; i < plan_->operations.size(); ++i) {
    bytes += plan_->operations[i].count * sizeOf(plan_->operations[i].dtype);
  }
  const TeamId team = teamOf(communicator);
  emit(CollectiveStep{communicator, first, count, stream, CountsId(), team,
                      members_.at(communicator).second});
  plan_->notes.back().bytes = std::max(plan_->notes.back().bytes, bytes);
  plan_->notes.back().team = isBarrier(communicator, first) ? team : TeamId();
}

void PlanBuilder::emit(const Wait& op, const UnrolledStep&) { emitWait(op.token, op.stream); }

void PlanBuilder::emit(const RecordEvent& op, const UnrolledStep&) {
  emitRecord(op.event, op.stream);
}

void PlanBuilder::emit(const WaitEvent& op, const UnrolledStep&) { emitWait(op.event, op.stream); }

// Emits a record of a token or an event of the program, if a different stream also uses it.
void PlanBuilder::emitRecord(const EventKey& key, StreamId stream) {
  EventUse& use = uses_.at(key);
  if (!use.crosses) return;
  if (!use.event.valid()) use.event = newEvent();
  emit(RecordStep{use.event, stream});
}

// Emits a wait for a token or an event of the program, if a different stream also uses it.
void PlanBuilder::emitWait(const EventKey& key, StreamId stream) {
  EventUse& use = uses_.at(key);
  if (!use.crosses) return;
  if (!use.event.valid()) use.event = newEvent();
  emit(WaitStep{use.event, stream});
}

}  // namespace heddle::host
