#include "host/lower/lower.h"

#include <algorithm>
#include <map>

#include "host/lower/cat_slices.h"
#include "host/lower/lower_all_to_all.h"
#include "host/lower/lower_reuses.h"
#include "host/lower/view_of.h"
#include "ir/analysis/kernel_rules.h"
#include "ir/analysis/memory_order.h"
#include "ir/analysis/reshard_step.h"
#include "ir/base/check.h"
#include "ir/ops/literal.h"
#include "ir/passes/note_stream_splits.h"
#include "ir/segment/library_calls.h"
#include "ir/types/mesh_relations.h"

namespace heddle::host {
namespace {

class Lowering {
 public:
  Lowering(const SegmentedFusion& segmented, int64_t job_size)
      : segmented_(segmented),
        fusion_(segmented.fusion),
        job_size_(job_size),
        cats_(segmented),
        slots_(fusion_.values().size()) {
    for (const Value& value : fusion_.values()) names_.add(value.name);
  }

  Program run() {
    program_.name = fusion_.name;
    program_.meshes = fusion_.meshes;
    program_.size_defaults = fusion_.size_defaults;
    program_.guards = fusion_.guards;
    for (ValueId id : fusion_.inputs()) program_.inputs.push_back(slotOf(id));
    // The order matters: any group may read a scalar, so scalars come first. The padding of a slot
    // depends on all collectives that use the slot, so padForCollectives() runs after all groups.
    evaluateScalars();
    for (const Group& group : segmented_.groups) lowerGroup(group);
    for (ValueId id : fusion_.outputs()) program_.outputs.push_back(slotOf(id));
    padForCollectives();
    appendReuses(program_, names_, fusion_, job_size_);
    markStreamSplits();
    return std::move(program_);
  }

 private:
  // Returns the slot of a value, and creates the slot at the first call.
  SlotId slotOf(ValueId id) {
    SlotId& slot = slots_[id];
    if (slot.valid()) return slot;
    const Value& value = fusion_.value(id);
    return slot = program_.slots.push_back(
               {value.name, value.is_scalar, value.tensor, {}, value.default_value});
  }

  void emit(Op op, int line, MeshId on = kNoMesh) {
    program_.body.push_back({std::move(op), on, line});
  }

  // Returns the value of Instruction::on for instructions that compute values on the mesh. kNoMesh
  // means that every rank of the job executes the instruction.
  MeshId onMesh(MeshId mesh) const {
    if (!mesh.valid()) return kNoMesh;
    return fusion_.meshes[mesh].size() < job_size_ ? mesh : kNoMesh;
  }

  // Returns the value of Instruction::on for instructions that write the value.
  MeshId on(ValueId id) const {
    const std::optional<Sharding>& sharding = fusion_.tensor(id).sharding;
    return sharding ? onMesh(sharding->mesh) : kNoMesh;
  }

  // Returns, per value, whether the program needs an Evaluate for it. A scalar needs one if it is
  // an output of the fusion, or if a group or a scalar with an Evaluate reads it. A constant that
  // only groups read needs none, because each kernel contains its constants.
  IdVector<ValueId, char> neededScalars() const {
    IdVector<ValueId, char> needed(fusion_.values().size(), 0);
    for (ValueId id : fusion_.outputs()) needed[id] = 1;
    for (ExprId user : fusion_.exprs().ids().reversed()) {
      const Expression& expr = fusion_.expr(user);
      const bool host = isHostScalar(fusion_, expr);
      if (host ? !needed[expr.outputs[0]] : !computesWithScalars(user)) continue;
      for (ValueId input : expr.inputs) {
        const ExprId definition = fusion_.value(input).definition;
        const bool literal =
            definition != kNoExpr && fusion_.expr(definition).op->kind == OpKind::Constant;
        if (host || !literal) needed[input] = 1;
      }
    }
    return needed;
  }

  // Returns whether the expression belongs to a group that computes it. A cat only stores its
  // pieces, so it computes nothing.
  bool computesWithScalars(ExprId id) const {
    const int group = segmented_.group_of[id];
    return group >= 0 && !segmented_.groups[group].cat;
  }

  void evaluateScalars() {
    const IdVector<ValueId, char> needed = neededScalars();
    for (ExprId id : fusion_.exprs().ids()) {
      const Expression& expr = fusion_.expr(id);
      if (!isHostScalar(fusion_, expr) || !needed[expr.outputs[0]]) continue;
      emit(scalarInstruction(expr), expr.line);
    }
  }

  Evaluate scalarInstruction(const Expression& expr) {
    const SlotId out = slotOf(expr.outputs[0]);
    if (expr.op->kind == OpKind::Constant) {
      return {out, literalValue(*expr.find("value"))};
    }
    if (expr.op->kind == OpKind::SizeOf) {
      const size_t axis = expr.axis();
      return {out, fusion_.tensor(expr.inputs[0]).domain[axis].extent};
    }
    HEDDLE_CHECK(expr.op->kind == OpKind::Pointwise, "op {} is not a scalar op", expr.op->name);
    Evaluate::Apply apply{expr.op, {}};
    for (ValueId input : expr.inputs) apply.args.push_back(slotOf(input));
    return {out, std::move(apply)};
  }

  void lowerGroup(const Group& group) {
    switch (group.kind) {
      case GroupKind::Kernel:
        return lowerKernel(group);
      case GroupKind::Library:
        if (group.attention) return lowerAttention(*group.attention);
        [[fallthrough]];
      case GroupKind::Communication:
      case GroupKind::Metadata:
        for (ExprId id : group.exprs) lowerExpression(group.kind, fusion_.expr(id));
        return;
      case GroupKind::Cat:
        return lowerCat(*group.cat);
    }
  }

  // Emits the instructions that define the memory of a value. Call this before an instruction
  // writes the value. A piece of a cat is a slice of the result of the cat, so the call for the
  // first piece also allocates the result. The result may be a piece of another cat, and then is
  // itself a slice.
  void provide(ValueId id, int line) {
    std::vector<ValueId> slices;  // each is a slice of the next one
    for (; !slots_[id].valid() && cats_.catOf(id) != nullptr; id = cats_.catOf(id)->result) {
      slices.push_back(id);
    }
    if (!slots_[id].valid()) emit(Allocate{slotOf(id)}, line, on(id));
    for (auto each = slices.rbegin(); each != slices.rend(); ++each) {
      const SlotId all = slotOf(cats_.catOf(*each)->result);
      emit(Alias{slotOf(*each), all, cats_.sliceOf(*each)}, line, on(*each));
    }
  }

  // Copies the pieces that no other group has written into the result. At least one piece has been
  // written by another group, so the result is already allocated.
  void lowerCat(const Cat& cat) {
    const int line = fusion_.expr(cat.exprs.back()).line;
    const SlotId result = slotOf(cat.result);
    for (const Cat::Piece& piece : cat.pieces) {
      if (piece.why_copied.empty()) continue;
      TensorView type = fusion_.tensor(piece.value);
      type.layout = {};
      const std::string name = names_.fresh(fusion_.value(cat.result).name + "_part");
      const SlotId part = program_.slots.push_back({name, false, std::move(type), {}, {}});
      emit(Alias{part, result, sliceOf(fusion_, cat, piece)}, line, on(cat.result));
      emit(Copy{part, slotOf(piece.value)}, line, on(cat.result));
    }
  }

  void lowerKernel(const Group& group) {
    Fusion segment = extract(segmented_, group);
    LaunchKernel launch{program_.kernels.endId(), {}, {}};
    // The segment has the inputs and outputs of its group, in the same order.
    const int line = fusion_.expr(group.exprs.front()).line;
    for (ValueId id : group.inputs) launch.inputs.push_back(slotOf(id));
    for (ValueId id : group.outputs) provide(id, line);
    for (ValueId id : group.outputs) launch.outputs.push_back(slotOf(id));
    const MeshId ranks = on(group.outputs.front());
    segment.name = fmt::format("k{}", launch.kernel);
    program_.kernels.push_back({segment.name, std::move(segment)});
    emit(std::move(launch), line, ranks);
  }

  void lowerExpression(GroupKind kind, const Expression& expr) {
    if (kind == GroupKind::Library) return lowerLibrary(expr);
    if (kind == GroupKind::Communication) return lowerCommunication(expr);
    emit(Alias{slotOf(expr.outputs[0]), slotOf(expr.inputs[0]), viewOf(fusion_, expr)}, expr.line,
         on(expr.outputs[0]));
  }

  void lowerLibrary(const Expression& expr) {
    CallLibrary call{
        std::string(expr.op->name), {}, {slotOf(expr.outputs[0])}, kCallerStream, expr.attrs};
    for (ValueId input : expr.inputs) call.inputs.push_back(slotOf(input));
    const MeshId ranks = on(expr.outputs[0]);
    emit(Allocate{call.outputs[0]}, expr.line, ranks);
    emit(std::move(call), expr.line, ranks);
  }

  void lowerAttention(const Attention& attention) {
    CallLibrary call{attention.backward ? "attention_backward" : "attention", {}, {}};
    for (ValueId id : attention.operands()) call.inputs.push_back(slotOf(id));
    for (ValueId id : attention.results) call.outputs.push_back(slotOf(id));
    if (attention.keeps_log_sums) call.outputs.push_back(logSumsOf(attention.results[0]));
    if (attention.forward != kNoValue) {
      call.inputs.push_back(slotOf(attention.forward));
      call.inputs.push_back(logSumsOf(attention.forward));
    }
    if (attention.causal) call.attrs.emplace_back("causal", true);
    if (attention.scale) call.attrs.emplace_back("scale", *attention.scale);
    if (attention.gqa) call.attrs.emplace_back("gqa", true);
    const int line = fusion_.expr(attention.exprs.back()).line;
    const MeshId ranks = on(attention.results[0]);
    for (SlotId out : call.outputs) emit(Allocate{out}, line, ranks);
    emit(std::move(call), line, ranks);
  }

  // Returns the slot for the log-sum-exps of a forward attention with the result `o`, and creates
  // the slot at the first call. The slot has the axes of `o` except the last one, the width of a
  // head.
  SlotId logSumsOf(ValueId o) {
    const auto [found, is_new] = log_sums_.try_emplace(o);
    if (!is_new) return found->second;
    const TensorView tensor = logSumsFor(fusion_.tensor(o));
    const std::string name = names_.fresh(fusion_.value(o).name + "_log_sums");
    return found->second = program_.slots.push_back({name, false, tensor, {}, std::nullopt});
  }

  static comm::CollectiveKind collectiveOf(const ReshardStep& step, const Expression& expr) {
    switch (step.kind) {
      case ReshardStep::Kind::Gather:
        return comm::CollectiveKind::Allgather;
      case ReshardStep::Kind::AllReduce:
        return comm::CollectiveKind::Allreduce;
      case ReshardStep::Kind::ReduceScatter:
        return comm::CollectiveKind::ReduceScatter;
      case ReshardStep::Kind::AllToAll:
        return comm::CollectiveKind::AllToAll;
      case ReshardStep::Kind::Transfer:
        return comm::CollectiveKind::Send;
      case ReshardStep::Kind::Broadcast:
        return comm::CollectiveKind::Broadcast;
      case ReshardStep::Kind::GatherTo:
        return comm::CollectiveKind::Gather;
      case ReshardStep::Kind::ScatterFrom:
        return comm::CollectiveKind::Scatter;
      case ReshardStep::Kind::Same:
      case ReshardStep::Kind::Relayout:
      case ReshardStep::Kind::Slice:
      case ReshardStep::Kind::Compound:
        break;
    }
    HEDDLE_CHECK(false, "set at line {} is not a single collective", expr.line);
  }

  void lowerCommunication(const Expression& expr) {
    const ReshardStep step = reshardStepOf(fusion_, expr);
    const SlotId in = slotOf(expr.inputs[0]);
    const SlotId out = slotOf(expr.outputs[0]);
    const MeshId mesh = findMesh(program_.meshes, step.mesh);
    HEDDLE_CHECK(mesh.valid(), "set at line {} communicates on an unknown mesh", expr.line);
    const TokenId token = program_.tokens.push_back(fmt::format("t{}", program_.tokens.endId()));
    Communicate post{
        collectiveOf(step, expr), out, in, {mesh, step.team}, step.reduce, kCallerStream, token};
    if (step.root >= 0) post.root = Size(step.root);
    if (step.kind == ReshardStep::Kind::AllToAll) {
      const std::optional<AxisOrder> order = memoryOrder(fusion_, expr.inputs[0]);
      HEDDLE_CHECK(order.has_value(), "the set at line {} has no memory order", expr.line);
      appendExchange(program_, names_, {post, step, *order, onMesh(mesh), expr.line});
    } else {
      emit(Allocate{out}, expr.line, on(expr.outputs[0]));
      emit(std::move(post), expr.line, onMesh(mesh));
      emit(Wait{token}, expr.line, onMesh(mesh));
    }
    collectives_.push_back({step, in, out});
  }

  struct Collective {
    ReshardStep step;
    SlotId in;
    SlotId out;
  };

  std::vector<Size>& allocOf(SlotId id) {
    Slot& slot = program_.slots[id];
    if (slot.alloc.empty()) slot.alloc = blockAllocation(slot.tensor, program_.meshes);
    return slot.alloc;
  }

  // Sets the allocation of `all`, the slot with the blocks that the collective joins or separates.
  // The allocation has space for all of these blocks, each with the allocated size of `block`.
  void padAllBlocks(const Collective& c, SlotId all, SlotId block) {
    const size_t axis = c.step.axis;
    const Size blocks = allocOf(block)[axis] * Size(blocksOf(c.step));
    const bool is_first = program_.slots[all].alloc.empty();
    Size& alloc = allocOf(all)[axis];
    // If a second collective uses the same slot, the slot gets the larger of both allocations.
    alloc = is_first ? blocks : Size::max(alloc, blocks);
  }

  // Sets allocations so that the element counts of a collective are equal on all ranks. The order
  // of the loops matters: the first loop may pad the input of an allreduce, a transfer or a
  // broadcast, and the second loop then copies this padding to the output.
  void padForCollectives() {
    for (const Collective& c : collectives_) {
      switch (c.step.kind) {
        case ReshardStep::Kind::ReduceScatter:
        case ReshardStep::Kind::AllToAll:
        case ReshardStep::Kind::ScatterFrom:
          padAllBlocks(c, c.in, c.out);
          break;
        default:
          break;
      }
    }
    for (const Collective& c : collectives_) {
      switch (c.step.kind) {
        case ReshardStep::Kind::Gather:
        case ReshardStep::Kind::GatherTo:
          padAllBlocks(c, c.out, c.in);
          break;
        case ReshardStep::Kind::AllReduce:
        case ReshardStep::Kind::Transfer:
        case ReshardStep::Kind::Broadcast:
          program_.slots[c.out].alloc = std::vector<Size>(allocOf(c.in));
          break;
        default:
          break;
      }
    }
  }

  // Copies the user's requests to compute a value in chunks (StreamRequest) from the fusion to the
  // slots of the values. The passes of host/passes/chunk read them there.
  void markStreamSplits() {
    const auto splits = fusion_.annotation<StreamSplits>(kStreamSplits);
    if (!splits) return;
    for (const StreamRequest& request : *splits) {
      const SlotId slot = request.value == kNoValue ? kNoSlot : slots_[request.value];
      const DeviceMesh& mesh = program_.meshes.at(request.mesh);
      HEDDLE_USER_CHECK(
          slot.valid() || mesh.size() == 1,
          "%{}: stream({}: {}): it is computed inside a kernel or a matrix product and "
          "has no memory of its own",
          request.name, request.split.axis, request.split.chunks);
      if (!slot.valid()) continue;
      std::optional<Sharding>& sharding = program_.slots[slot].tensor.sharding;
      if (sharding) sharding->stream = request.split;
    }
  }

  const SegmentedFusion& segmented_;
  const Fusion& fusion_;
  const int64_t job_size_;
  const CatSlices cats_;
  IdVector<ValueId, SlotId> slots_;
  std::map<ValueId, SlotId> log_sums_;  // by the result of the attention
  UniqueNames names_{2};                // names of the values of the fusion and of all slots
  std::vector<Collective> collectives_;
  Program program_;
};

}  // namespace

Program lower(const SegmentedFusion& segmented, int64_t job_size) {
  return Lowering(segmented, job_size).run();
}

}  // namespace heddle::host
