#include "host/trace_checks.h"
#include "host/tracer.h"
#include "host/view.h"
#include "host/visit.h"
#include "ir/error.h"

namespace heddle::host {

void Tracer::define(SlotId id, View view) {
  for (size_t i = frames_.size(); i-- > 0;) {
    Frame& frame = frames_[i];
    if (frame.kind != Frame::Kind::Then && frame.kind != Frame::Kind::Else) continue;
    frame.before.emplace(id, viewOf(id));  // the first definition in the branch counts
    break;
  }
  branched_.erase(id);
  viewOf(id) = std::move(view);
}

const View& Tracer::tensor(SlotId id) {
  HEDDLE_USER_CHECK(!slot(id).is_scalar, "%{} is a scalar", slot(id).name);
  const View& view = viewOf(id);
  HEDDLE_USER_CHECK(view.buffer >= 0, "%{} is used before it is defined{}", slot(id).name,
                    undefinedReason(id));
  return view;
}

void Tracer::readScalar(TraceStep& step, SlotId id) {
  HEDDLE_USER_CHECK(slot(id).is_scalar, "%{} is no scalar", slot(id).name);
  HEDDLE_USER_CHECK(scalars_.count(id) > 0, "%{} is used before it is defined", slot(id).name);
  step.inputs.emplace_back();
  step.scalar_inputs.push_back(registerOf(id));
}

void Tracer::read(TraceStep& step, SlotId id) {
  if (slot(id).is_scalar) return readScalar(step, id);
  step.inputs.push_back(tensor(id));
  step.scalar_inputs.push_back(-1);
}

void Tracer::operands(TraceStep& step, const std::vector<SlotId>& inputs,
                      const std::vector<SlotId>& outputs) {
  for (SlotId id : inputs) read(step, id);
  for (SlotId id : outputs) write(step, id);
}

void Tracer::writeScalar(TraceStep& step, SlotId id) {
  HEDDLE_USER_CHECK(slot(id).is_scalar, "%{} is no scalar", slot(id).name);
  scalars_.insert(id);
  step.scalar_out = registerOf(id);
}

void Tracer::fill(TraceStep& step, const Op& op) {
  std::visit(Overloaded{
                 [&](const Allocate& x) { allocate(step, x); },
                 [&](const Free& x) { read(step, x.slot); },
                 [&](const Alias& x) { alias(step, x); },
                 [&](const Evaluate& x) { evaluate(step, x); },
                 [&](const LaunchKernel& x) {
                   operands(step, x.inputs, x.outputs);
                   checkLaunch(program_.kernels.at(static_cast<size_t>(x.kernel)).segment, step);
                 },
                 [&](const CallLibrary& x) {
                   operands(step, x.inputs, x.outputs);
                   checkLibrary(x, step);
                 },
                 [&](const Copy& x) {
                   operands(step, {x.in}, {x.out});
                   checkCopy(step);
                 },
                 [&](const Communicate& x) {
                   operands(step, {x.in}, {x.out});
                   checkCollective(x, step, scope_.teamSize(x.team));
                 },
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
                   checkReadBack(slot(x.in), step);
                   writeScalar(step, x.out);
                 },
                 [](const For&) {},  // walked by openLoop, openBranch; calls are inlined before
                 [](const If&) {},
                 [](const Call& x) { HEDDLE_CHECK(false, "a call of {} in a trace", x.program); },
                 [&](const Check& x) { read(step, x.slot); },
                 [&](const Print& x) { read(step, x.slot); },
             },
             op);
}

void Tracer::allocate(TraceStep& step, const Allocate& x) {
  HEDDLE_USER_CHECK(!slot(x.out).is_scalar, "%{} is a scalar", slot(x.out).name);
  TensorDesc desc = scope_.describe(slot(x.out));
  const auto buffer = static_cast<BufferId>(trace_.buffers.size());
  trace_.buffers.push_back({Buffer::Origin::Allocated, -1, desc.allocBytes(), slot(x.out).name});
  define(x.out, {buffer, 0, std::move(desc)});
  write(step, x.out);
}

void Tracer::alias(TraceStep& step, const Alias& x) {
  read(step, x.in);
  View view = makeView(x, slot(x.out), slot(x.in), tensor(x.in), scope_);
  define(x.out, std::move(view));
  write(step, x.out);
}

void Tracer::evaluate(TraceStep& step, const Evaluate& x) {
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

void Tracer::peer(TraceStep& step, const Size& peer, const Team& team) {
  const int64_t size = scope_.teamSize(team);
  step.peer = scope_.evaluate(peer);
  HEDDLE_USER_CHECK(step.peer >= 0 && step.peer < size, "peer {} = {} in a team of {}", peer.str(),
                    step.peer, size);
  const View& view = step.inputs.empty() ? step.outputs.front() : step.inputs.front();
  checkDense(view, "a send or receive");
}

}  // namespace heddle::host
