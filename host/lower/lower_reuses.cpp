#include "host/lower/lower_reuses.h"

#include <map>
#include <set>

#include "host/program/visit.h"

namespace heddle::host {
namespace {

class ReuseWriter {
 public:
  ReuseWriter(Program& program, UniqueNames& names, int64_t job_size)
      : program_(program), names_(names), job_size_(job_size), viewed_(program.slots.size()) {
    for (const Instruction& x : program.body) {
      // Only an Alias makes a view.
      if (const auto* view = std::get_if<Alias>(&x.op)) viewed_[view->out] = view->in;
    }
    forEachInstruction(program.body, [&](const Instruction& x, InstructionIndex) {
      // Only an Alias of the kind Reshape regroups the axes of a buffer.
      const auto* view = std::get_if<Alias>(&x.op);
      if (view != nullptr && std::holds_alternative<Alias::Reshape>(view->view)) {
        reshaped_.insert(rootOf(view->in));
      }
    });
  }

  // A Copy to an input would overwrite each output that is the input or a view of it. keep()
  // therefore copies these outputs to new slots first.
  void run() {
    std::set<SlotId> overwritten;
    for (const auto& [output, reuse] : program_.reuses) {
      if (program_.outputs[output] != reuse.input) overwritten.insert(reuse.input);
    }
    if (overwritten.empty()) return;
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      if (overwritten.contains(rootOf(program_.outputs[i]))) keep(program_.outputs[i]);
    }
    for (const auto& [output, reuse] : program_.reuses) {
      SlotId& value = program_.outputs[output];
      if (value == reuse.input) continue;
      takePadding(reuse.input, value);
      emit(Copy{reuse.input, value});
      value = reuse.input;
    }
  }

 private:
  const Slot& slot(SlotId id) const { return program_.slots[id]; }

  SlotId rootOf(SlotId id) const {
    while (viewed_.has(id) && viewed_[id].valid()) id = viewed_[id];
    return id;
  }

  // Copies an output to a new slot, which becomes the output.
  void keep(SlotId& output) {
    Slot copy{names_.fresh(slot(output).name + kKeptSuffix), false, slot(output).tensor, {}, {}};
    copy.tensor.layout.observed.reset();
    const SlotId kept = program_.slots.push_back(std::move(copy));
    emit(Allocate{kept}, kept);
    emit(Copy{kept, output}, kept);
    output = kept;
  }

  // Gives the input the allocated sizes of `from`, the slot that is copied to it.
  void takePadding(SlotId input, SlotId from) {
    // A view that regroups the axes of the input needs memory without padding.
    if (reshaped_.contains(input)) return;
    std::vector<Size>& alloc = program_.slots[input].alloc;
    if (alloc.empty()) alloc = std::vector<Size>(slot(from).alloc);
  }

  void emit(Copy copy) {
    const SlotId out = copy.out;
    emit(std::move(copy), out);
  }
  // Appends an instruction for the ranks that hold a part of the slot.
  void emit(Op op, SlotId written) {
    const std::optional<Sharding>& sharding = slot(written).tensor.sharding;
    const bool some = sharding && program_.meshes.at(sharding->mesh).size() < job_size_;
    program_.body.push_back({std::move(op), some ? sharding->mesh : kNoMesh});
  }

  Program& program_;
  UniqueNames& names_;
  const int64_t job_size_;
  IdVector<SlotId, SlotId> viewed_;  // per slot: the slot of which it is a view
  std::set<SlotId> reshaped_;        // the slots of which a view regroups the axes
};

}  // namespace

void appendReuses(Program& program, UniqueNames& names, const Fusion& fusion, int64_t job_size) {
  std::map<ValueId, SlotId> slot_of;  // per input
  for (size_t i = 0; i < program.inputs.size(); ++i)
    slot_of[fusion.inputs()[i]] = program.inputs[i];
  for (size_t i = 0; i < fusion.outputs().size(); ++i) {
    const std::optional<OutputReuse>& reuse = fusion.reuses()[i];
    if (reuse) program.reuses[i] = {slot_of.at(reuse->input), reuse->required};
  }
  ReuseWriter(program, names, job_size).run();
}

const std::string& outputName(const Program& program, size_t output) {
  const SlotId id = program.outputs.at(output);
  const std::string& name = program.slots.at(id).name;
  if (name.find(kKeptSuffix) == std::string::npos) return name;
  for (const Instruction& x : program.body) {
    const auto* copy = std::get_if<Copy>(&x.op);  // keep() writes the new slot with a Copy
    if (copy == nullptr || copy->out != id) continue;
    const std::string& copied = program.slots.at(copy->in).name;
    if (name.starts_with(copied + kKeptSuffix)) return copied;
  }
  return name;
}

}  // namespace heddle::host
