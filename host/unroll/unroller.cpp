#include "host/unroll/unroller.h"

#include "host/unroll/check_operands.h"
#include "host/unroll/count_steps.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

// The largest number of elements of a list. Programs use lists only for the counts of an
// all-to-all-v, with one element per rank of the team, and no job has so many ranks. The limit
// keeps register numbers in range.
constexpr int64_t kMaxList = 1 << 20;

SizeBindings withDefaults(const Program& program, SizeBindings sizes) {
  for (const auto& [symbol, value] : program.size_defaults) sizes.emplace(symbol, value);
  return sizes;
}

}  // namespace

Unroller::Unroller(const Program& program, const UnrollRequest& request)
    : program_(program),
      request_(request),
      scope_(program.meshes, withDefaults(program, request.sizes), request.rank, request.ranks),
      views_(program.slots.size()),
      registers_(program.slots.size()),
      needs_values_(program.kernels.size()) {}

// The order matters. restrictLate() requires that the guards hold, so they are checked first. The
// steps are counted before any step is created. dropTakenFrees() changes the indices of steps, so
// it comes last.
Unrolled Unroller::run() {
  unrolled_.rank = request_.rank;
  scope_.check(program_.guards);
  scope_.trackLate(request_.late, unrolled_.late);
  for (const SizeGuard& guard : program_.guards) scope_.restrictLate(guard.b - guard.a);
  checkSteps();
  inputs();
  donate();
  frames_.push_back({Frame::Kind::Body, &program_.body});
  while (!frames_.empty()) advance();
  outputs();
  dropTakenFrees();
  return std::move(unrolled_);
}

// The limit keeps the steps below 1 GB, because a step takes about 700 bytes, including its views.
void Unroller::checkSteps() {
  constexpr int64_t kMostSteps = 1'000'000;
  const StepCount count = countSteps(program_, scope_, kMostSteps);
  if (count.steps <= kMostSteps) {
    unrolled_.steps.reserve(count.steps);
    return;
  }
  userError("{}program {} takes {}{} steps on rank {}, and at most {} are allowed",
            positionOf(*count.largest, count.largest_index), program_.name,
            count.at_least ? "more than " : "", count.steps, request_.rank, kMostSteps);
}

RegisterId Unroller::registerOf(SlotId id) {
  RegisterId& found = registers_.at(id);
  const Slot& named = slot(id);
  if (found.valid() && !named.isList()) return found;
  const int64_t count = named.isList() ? scope_.evaluate(named.tensor.domain.front().extent) : 1;
  HEDDLE_USER_CHECK(count >= 0 && count <= kMaxList, "%{}: a list of {} elements, at most {}",
                    named.name, count, kMaxList);
  if (found.valid()) {
    const int64_t before = list_lengths_.at(id);
    HEDDLE_USER_CHECK(count == before, "%{}: a list of {} elements here and of {} before",
                      named.name, count, before);
    return found;
  }
  if (named.isList()) list_lengths_[id] = count;
  found = RegisterId(unrolled_.registers);
  unrolled_.registers += static_cast<size_t>(count);
  return found;
}

namespace {

// Returns whether both descriptors give every element the same position in memory. Ignores the
// strides of axes of one element, because they do not influence positions.
bool liesAs(const TensorDesc& wanted, const TensorDesc& given) {
  if (wanted.alloc != given.alloc) return false;
  if (given.numel() == 0) return true;
  for (size_t axis = 0; axis < given.rank(); ++axis) {
    if (given.alloc[axis] > 1 && given.strides[axis] != wanted.strides[axis]) return false;
  }
  return true;
}

}  // namespace

void Unroller::inputs() {
  HEDDLE_USER_CHECK(request_.inputs.empty() || request_.inputs.size() == program_.inputs.size(),
                    "program {} has {} inputs, got {}", program_.name, program_.inputs.size(),
                    request_.inputs.size());
  for (size_t i = 0; i < program_.inputs.size(); ++i) {
    const SlotId id = program_.inputs[i];
    if (slot(id).is_scalar) {
      unrolled_.input_registers.push_back(registerOf(id));
      unrolled_.input_descs.emplace_back();
      scalars_.insert(id);
      continue;
    }
    unrolled_.input_registers.emplace_back();
    TensorDesc desc = scope_.describe(slot(id));
    if (const auto& observed = slot(id).tensor.layout.observed) {
      desc.strides = stridesFor(desc.alloc, observed->order);
    }
    if (!request_.inputs.empty()) {
      checkInput(slot(id), desc, request_.inputs[i]);
      if (!liesAs(desc, request_.inputs[i])) elsewhere_[unrolled_.buffers.endId()] = desc;
      desc = request_.inputs[i];
    }
    const BufferId buffer = unrolled_.buffers.push_back(
        {Buffer::Origin::Input, static_cast<int32_t>(i), desc.allocBytes(), slot(id).name});
    unrolled_.input_descs.push_back(desc);
    views_[id] = std::make_shared<const View>(View{buffer, 0, std::move(desc)});
  }
  for (const auto& [position, reuse] : program_.reuses) reused_[reuse.input] = viewOf(reuse.input);
}

void Unroller::outputs() {
  for (SlotId id : program_.outputs) {
    const bool scalar = slot(id).is_scalar;
    if (!scalar && !viewOf(id).buffer.valid()) {
      TensorDesc outside = scope_.describe(slot(id));
      if (!outside.held) {
        unrolled_.scalar_outputs.emplace_back();
        unrolled_.outputs.push_back({BufferId(), 0, std::move(outside)});
        continue;
      }
    }
    const bool defined = scalar ? scalars_.count(id) > 0 : viewOf(id).buffer.valid();
    HEDDLE_USER_CHECK(defined, "the output %{} of program {} is not defined at its end{}",
                      slot(id).name, program_.name, undefinedReason(id));
    unrolled_.scalar_outputs.push_back(scalar ? registerOf(id) : RegisterId());
    unrolled_.outputs.push_back(scalar ? View{} : viewOf(id));
  }
  for (const auto& [position, reuse] : program_.reuses) checkReuse(position, reuse.input);
  checkDonatedOutputs();
}

// Requires that the output is the complete input. Checks nothing on a rank outside of the mesh,
// because output and input have no memory there.
void Unroller::checkReuse(size_t position, SlotId input) const {
  const View& output = unrolled_.outputs.at(position);
  const View& memory = reused_.at(input);
  if (!output.desc.held) return;
  const bool is_same = output.buffer == memory.buffer && output.byte_offset == 0 &&
                       output.late.empty() && output.desc.sizes == memory.desc.sizes &&
                       output.desc.strides == memory.desc.strides;
  HEDDLE_USER_CHECK(is_same,
                    "program {} declares its output %{} `in %{}`, but at its end, the output is "
                    "not the complete input",
                    program_.name, slot(program_.outputs[position]).name, slot(input).name);
}

std::string Unroller::undefinedReason(SlotId id) const {
  if (branched_.count(id) == 0) return "";
  return ": it was defined in a branch that is decided at run time";
}

}  // namespace heddle::host
