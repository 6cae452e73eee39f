#include <algorithm>

#include "comm/operation.h"
#include "host/program/library_op.h"
#include "host/program/visit.h"
#include "host/text/program_rules.h"
#include "host/text/text_names.h"
#include "host/verify/verify_structure.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

void verifyTeam(const Program& program, const Team& team) {
  if (!team.mesh.valid()) {
    HEDDLE_USER_CHECK(team.axes.empty(), "a team with axes and no mesh");
    return;
  }
  HEDDLE_USER_CHECK(program.meshes.has(team.mesh), "mesh {} of {}", team.mesh,
                    program.meshes.size());
  const DeviceMesh& mesh = program.meshes[team.mesh];
  std::set<MeshAxis> seen;
  for (MeshAxis axis : team.axes) {
    HEDDLE_USER_CHECK(mesh.has(axis), "mesh @{} has no axis {}", mesh.name, name(axis));
    HEDDLE_USER_CHECK(seen.insert(axis).second, "a team names the axis {} twice", name(axis));
  }
}

template <class IdType, class Item>
void verifyId(IdType id, const IdVector<IdType, Item>& items, std::string_view what) {
  HEDDLE_USER_CHECK(items.has(id), "{} {} of {}", what, id, items.size());
}

class InstructionVerifier {
 public:
  explicit InstructionVerifier(const Program& program) : program_(program) {}

  // Checks the instructions that have no overload of their own: the slots that such an instruction
  // reads or writes must be tensors.
  template <class Other>
  void operator()(const Other& x) const {
    forEachSlot(x, [&](SlotId id, FieldRole role) {
      if (role.reads || role.writes) tensor(id);
    });
  }
  void operator()(const Alias& x) const {
    tensor(x.out);
    tensor(x.in);
  }
  void operator()(const Evaluate& x) const {
    scalar(x.out);
    // Only an Apply has operands.
    const auto* apply = std::get_if<Evaluate::Apply>(&x.expression);
    if (apply == nullptr) return;
    HEDDLE_USER_CHECK(apply->op != nullptr && apply->op->kind == OpKind::Pointwise,
                      "evaluate needs a pointwise op");
    HEDDLE_USER_CHECK(static_cast<size_t>(apply->op->arity) == apply->args.size(),
                      "{} takes {} operands, got {}", apply->op->name, apply->op->arity,
                      apply->args.size());
    for (SlotId id : apply->args) scalar(id);
  }
  void operator()(const LaunchKernel& x) const {
    const Kernel& kernel = program_.kernels[x.kernel];
    operands(kernel, x.inputs, kernel.segment.inputs(), "inputs");
    operands(kernel, x.outputs, kernel.segment.outputs(), "outputs");
    for (SlotId id : x.outputs) tensor(id);
  }
  void operator()(const CallLibrary& x) const {
    for (SlotId id : x.inputs) tensor(id);
    for (SlotId id : x.outputs) tensor(id);
    inRange(x.function, "spare_sms", x.spare_sms, kMostCtas);
    verifyLibrary(program_, x);
  }
  void operator()(const Copy& x) const {
    tensor(x.in);
    tensor(x.out);
    sameType(x.in, x.out);
  }
  void operator()(const Communicate& x) const {
    using comm::CollectiveKind;
    const std::string_view kind = collectiveName(x.kind);
    HEDDLE_USER_CHECK(x.kind != CollectiveKind::Recv,
                      "recv is a separate instruction; communicate send posts both ends");
    const bool reduces = comm::reduces(x.kind);
    const bool rooted = comm::isRooted(x.kind) || x.kind == CollectiveKind::Send;
    HEDDLE_USER_CHECK(reduces == x.reduce.has_value(), "{} {}", kind,
                      reduces ? "needs op=" : "does not reduce: remove op=");
    HEDDLE_USER_CHECK(rooted == x.root.has_value(), "{} {}", kind,
                      rooted ? "needs root=" : "has no root: remove root=");
    if (rooted) sameOnTheTeam(*x.root, x.team);
    const comm::Carrier carrier = x.carrier;
    inRange(kind, "ctas", carrier.ctas, kMostCtas);
    inRange(kind, "lane", carrier.copy_channel, kMostCopyChannels);
    HEDDLE_USER_CHECK(carrier.copy_channel == 0 || comm::mayCopy(x.kind),
                      "{}: lane= is for allreduce, allgather and reduce_scatter", kind);
    const bool counts = x.kind == CollectiveKind::AllToAllV;
    HEDDLE_USER_CHECK(counts == x.send_counts.has_value() && counts == x.recv_counts.has_value(),
                      "{} {}", kind,
                      counts ? "needs send_counts= and recv_counts="
                             : "has equal parts: remove send_counts= and recv_counts=");
    for (const auto& id : {x.send_counts, x.recv_counts}) {
      HEDDLE_USER_CHECK(!id || slot(*id).isList(),
                        "%{} is not a list; declare it as in list i64[ranks]", slot(*id).name);
    }
    HEDDLE_USER_CHECK(mayGroup(x.kind) || x.also.empty(), "{} takes only one pair of slots", kind);
    if (x.kind == CollectiveKind::Barrier) {
      HEDDLE_USER_CHECK(x.in == kNoSlot && x.out == kNoSlot, "a barrier takes no slots");
      return;
    }
    for (const Communicate::Pair& pair : x.pairs()) moves(x, pair);
  }
  void operator()(const ReadBack& x) const {
    tensor(x.in);
    if (!slot(x.out).isList()) return scalar(x.out);
    const DType dtype = slot(x.in).tensor.dtype;
    HEDDLE_USER_CHECK(dtype == DType::I64, "the list %{} is i64, %{} is {}", slot(x.out).name,
                      slot(x.in).name, name(dtype));
  }
  void operator()(const If& x) const {
    const auto* id = std::get_if<SlotId>(&x.predicate.lhs);
    if (id == nullptr) return;
    scalar(*id);
    HEDDLE_USER_CHECK(!isFloat(slot(*id).tensor.dtype), "%{} is {}, a predicate needs i64 or bool",
                      slot(*id).name, name(slot(*id).tensor.dtype));
  }
  void operator()(const Call& x) const {
    for (const Program& callee : program_.callees) {
      if (callee.name != x.program) continue;
      HEDDLE_USER_CHECK(
          callee.inputs.size() == x.inputs.size() && callee.outputs.size() == x.outputs.size(),
          "program {} takes {} inputs and has {} outputs, the call has {} and {}", x.program,
          callee.inputs.size(), callee.outputs.size(), x.inputs.size(), x.outputs.size());
      return;
    }
    userError("there is no program {} to call", x.program);
  }
  void operator()(const Print& x) const {
    HEDDLE_USER_CHECK(!slot(x.slot).isList(), "%{} is a list; print takes a tensor or a scalar",
                      slot(x.slot).name);
  }

 private:
  const Slot& slot(SlotId id) const { return program_.slots[id]; }
  void tensor(SlotId id) const {
    HEDDLE_USER_CHECK(!slot(id).is_scalar, "%{} is a scalar, expected a tensor", slot(id).name);
  }
  void scalar(SlotId id) const {
    HEDDLE_USER_CHECK(slot(id).is_scalar, "%{} is a tensor, expected a scalar", slot(id).name);
    HEDDLE_USER_CHECK(!slot(id).isList(), "%{} is a list, expected a scalar", slot(id).name);
  }
  // Checks a count of the instruction `what`. 0: the instruction has no such count.
  static void inRange(std::string_view what, std::string_view key, int32_t count, int32_t most) {
    const std::string why = count == 0 ? "" : countViolation(key, count, most);
    HEDDLE_USER_CHECK(why.empty(), "{}: {}", what, why);
  }
  // Requires that the root is the same on all ranks of the team. The root must not depend on
  // `rank`. It may depend on a coordinate of this rank only along an axis of the team's mesh over
  // which the team does not extend.
  void sameOnTheTeam(const Size& root, const Team& team) const {
    std::vector<std::string> symbols;
    root.collectSymbols(symbols);
    for (const std::string& symbol : symbols) {
      bool same = symbol != "rank" && !(symbol.starts_with("@") && symbol.ends_with(".index"));
      for (size_t i = 0; team.mesh.valid() && !team.axes.empty() && !same && i < 3; ++i) {
        const auto axis = static_cast<MeshAxis>(i);
        const bool others = std::find(team.axes.begin(), team.axes.end(), axis) == team.axes.end();
        const DeviceMesh& mesh = program_.meshes[team.mesh];
        same = others && symbol == fmt::format("@{}.{}.index", mesh.name, name(axis));
      }
      HEDDLE_USER_CHECK(same, "root={}: {} is not the same on all ranks of the team", root.str(),
                        symbol);
    }
  }
  // Checks one pair of slots of a collective.
  void moves(const Communicate& x, const Communicate::Pair& pair) const {
    HEDDLE_USER_CHECK(pair.in != kNoSlot && pair.out != kNoSlot, "{} needs two slots",
                      collectiveName(x.kind));
    tensor(pair.in);
    tensor(pair.out);
    sameType(pair.in, pair.out);
    const DType dtype = slot(pair.in).tensor.dtype;
    if (!x.reduce) return;
    HEDDLE_USER_CHECK(*x.reduce != ReduceOp::Avg || isFloat(dtype), "avg is for floats, %{} is {}",
                      slot(pair.in).name, name(dtype));
    HEDDLE_USER_CHECK(!isFloat8(dtype), "f8 types can only be moved, %{} is {}", slot(pair.in).name,
                      name(dtype));
  }
  void sameType(SlotId a, SlotId b) const {
    const DType x = slot(a).tensor.dtype, y = slot(b).tensor.dtype;
    HEDDLE_USER_CHECK(x == y, "%{} is {} and %{} is {}", slot(a).name, name(x), slot(b).name,
                      name(y));
  }
  void operands(const Kernel& kernel, const std::vector<SlotId>& slots,
                const std::vector<ValueId>& values, std::string_view what) const {
    HEDDLE_USER_CHECK(slots.size() == values.size(), "kernel @{} has {} {}, got {}", kernel.name,
                      values.size(), what, slots.size());
    for (size_t i = 0; i < slots.size(); ++i) {
      const Slot& got = slot(slots[i]);
      const Value& want = kernel.segment.value(values[i]);
      HEDDLE_USER_CHECK(
          got.is_scalar == want.is_scalar && got.tensor.dtype == want.tensor.dtype &&
              got.tensor.rank() == want.tensor.rank(),
          "%{} does not fit %{} of kernel @{}: {} {} of rank {}, expected {} {} of rank {}",
          got.name, want.name, kernel.name, got.is_scalar ? "scalar" : "tensor",
          name(got.tensor.dtype), got.tensor.rank(), want.is_scalar ? "scalar" : "tensor",
          name(want.tensor.dtype), want.tensor.rank());
    }
  }

  const Program& program_;
};

}  // namespace

void verifyIds(const Program& program, const Instruction& x) {
  if (x.on.valid()) verifyId(x.on, program.meshes, "mesh");
  forEachSlot(x.op, [&](SlotId id, FieldRole) { verifyId(id, program.slots, "slot"); });
  const std::string bad_stream = streamViolation(streamOf(x.op).value_or(kCallerStream).number());
  HEDDLE_USER_CHECK(bad_stream.empty(), "{}", bad_stream);
  forEachToken(x.op, [&](TokenId id, FieldRole) { verifyId(id, program.tokens, "token"); });
  forEachFieldOfKind<FieldKind::EventUse>(
      x.op, [&](EventId id, FieldRole) { verifyId(id, program.events, "event"); });
  forEachFieldOfKind<FieldKind::Kernel>(
      x.op, [&](KernelId id, FieldRole) { verifyId(id, program.kernels, "kernel"); });
  if (const Team* team = teamOf(x.op)) verifyTeam(program, *team);
}

void verifyOperands(const Program& program, const Op& op) {
  std::visit(InstructionVerifier(program), op);
}

}  // namespace heddle::host
