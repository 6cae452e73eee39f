#include "host/program/library_op.h"

#include <algorithm>

#include "ir/base/check.h"

namespace heddle::host {
namespace {

constexpr AttrSpec kAttentionAttrs[] = {{"causal", AttrType::Bool, false},
                                        {"scale", AttrType::Float, false},
                                        {"gqa", AttrType::Bool, false}};
constexpr AttrSpec kBackwardAttrs[] = {{"causal", AttrType::Bool, false},
                                       {"scale", AttrType::Float, false}};
constexpr OpDef kAttention{"attention", OpKind::Scan, 3,       DTypeRule::Promote,
                           "",          nullptr,      nullptr, kAttentionAttrs};
constexpr OpDef kAttentionBackward{.name = "attention_backward",
                                   .kind = OpKind::Scan,
                                   .arity = 4,
                                   .dtype_rule = DTypeRule::Promote,
                                   .text = "",
                                   .attrs = kBackwardAttrs,
                                   .optional_operands = 2};
constexpr size_t kGradients = 3;  // results of attention_backward

const Attr* findAttr(const CallLibrary& call, std::string_view name) {
  for (const auto& [key, value] : call.attrs) {
    if (key == name) return &value;
  }
  return nullptr;
}

void verifyAttributes(const OpDef& op, const CallLibrary& call) {
  for (const auto& [name, value] : call.attrs) {
    const auto spec =
        std::find_if(op.attrs.begin(), op.attrs.end(),
                     [&name = name](const AttrSpec& each) { return each.name == name; });
    HEDDLE_USER_CHECK(spec != op.attrs.end(), "{} has no attribute {}; it takes {}", op.name, name,
                      libraryArgumentsOf(op));
    HEDDLE_USER_CHECK(hasType(value, spec->type), "{}: the value of {}= has the wrong type",
                      op.name, name);
  }
  for (const AttrSpec& spec : op.attrs) {
    // A fusion may omit the axis of some ops, but a program always contains it.
    const bool required = spec.required || spec.name == "axis";
    HEDDLE_USER_CHECK(!required || findAttr(call, spec.name) != nullptr,
                      "{} needs {}=; it takes {}", op.name, spec.name, libraryArgumentsOf(op));
  }
}

void expectType(const OpDef& op, const Slot& slot, DType dtype) {
  HEDDLE_USER_CHECK(slot.tensor.dtype == dtype, "{}: %{} is {}, expected {}", op.name, slot.name,
                    name(slot.tensor.dtype), name(dtype));
}

// Checks an op that processes lines along an axis, such as a scan. A line is a list of elements
// whose indices differ only along this axis. Each rank needs full lines, so no tensor of the call
// may be sharded along the axis. Exception: the first operand and the result of a scatter may be
// sharded along it, if both have the same sharding there.
void verifyLines(const Program& program, const OpDef& op, const CallLibrary& call) {
  const int64_t axis = libraryAxis(call);
  const Slot& out = program.slots[call.outputs[0]];
  const auto rank = static_cast<int64_t>(out.tensor.rank());
  HEDDLE_USER_CHECK(axis >= 0 && axis < rank, "{}: axis {} of %{}, which has the axes 0 to {}",
                    op.name, axis, out.name, rank - 1);
  std::vector<SlotId> slots = call.inputs;
  slots.push_back(call.outputs[0]);
  const auto cutsOf = [&](const Slot& slot) {
    const std::optional<Sharding>& sharding = slot.tensor.sharding;
    const bool cut = sharding && sharding->isSharded(static_cast<size_t>(axis));
    return cut ? sharding->axes[axis] : std::vector<MeshAxis>{};
  };
  for (SlotId id : slots) {
    const Slot& slot = program.slots[id];
    HEDDLE_USER_CHECK(slot.tensor.rank() == out.tensor.rank(),
                      "{}: %{} has rank {} and %{} rank {}", op.name, slot.name, slot.tensor.rank(),
                      out.name, rank);
    const bool target = op.kind == OpKind::Scatter && (id == call.inputs[0] || &slot == &out);
    HEDDLE_USER_CHECK(cutsOf(slot).empty() || target,
                      "{}: axis {} of %{} is sharded, but each rank needs full lines along it",
                      op.name, axis, slot.name);
    HEDDLE_USER_CHECK(!target || cutsOf(slot) == cutsOf(out),
                      "{}: axis {} of %{} and of %{} are sharded in different ways", op.name, axis,
                      slot.name, out.name);
  }
}

void verifyTypes(const Program& program, const OpDef& op, const CallLibrary& call) {
  const auto slot = [&](SlotId id) -> const Slot& { return program.slots[id]; };
  const DType first = slot(call.inputs[0]).tensor.dtype;
  HEDDLE_USER_CHECK(!isFloat8(first) || op.name == "scatter",
                    "{}: %{} is {}, which is only for casts, data movement and matrix products",
                    op.name, slot(call.inputs[0]).name, name(first));
  DType result = first;
  if (op.kind == OpKind::Scan && (op.name == "argsort" || !isFloat(first))) result = DType::I64;
  expectType(op, slot(call.outputs[0]), result);
  if (op.kind != OpKind::Scatter) return;
  if (slot(call.inputs[1]).tensor.dtype != DType::I32) {
    expectType(op, slot(call.inputs[1]), DType::I64);
  }
  expectType(op, slot(call.inputs[2]), first);
}

// Returns "4", or "4 or 6" if a call may have two more operands.
std::string operandCounts(const OpDef& op) {
  if (op.optional_operands == 0) return fmt::format("{}", op.arity);
  return fmt::format("{} or {}", op.arity, op.arity + op.optional_operands);
}

void verifyCounts(const OpDef& op, const CallLibrary& call) {
  const size_t least = op.arity;
  const size_t most = least + static_cast<size_t>(op.optional_operands);
  const bool operands_fit = call.inputs.size() == least || call.inputs.size() == most;
  const size_t results = isAttentionBackward(call) ? kGradients : 1;
  const bool may_have_log_sums = isAttention(call) && !isAttentionBackward(call);
  const bool results_fit =
      call.outputs.size() == results || (may_have_log_sums && call.outputs.size() == results + 1);
  HEDDLE_USER_CHECK(operands_fit && results_fit,
                    "{} takes {} tensors and returns {}, got {} and {}", op.name, operandCounts(op),
                    may_have_log_sums ? "1 or 2" : fmt::format("{}", results), call.inputs.size(),
                    call.outputs.size());
}

// Checks the slot for the log-sums of an attention. `rank` is the number of axes of the result.
void verifyLogSums(const OpDef& op, const Slot& log_sums, size_t rank) {
  expectType(op, log_sums, DType::F32);
  HEDDLE_USER_CHECK(log_sums.tensor.rank() == rank - 1,
                    "{}: the log-sums %{} have rank {}, expected {}: the axes of the result "
                    "without the width",
                    op.name, log_sums.name, log_sums.tensor.rank(), rank - 1);
  const std::optional<Sharding>& sharding = log_sums.tensor.sharding;
  HEDDLE_USER_CHECK(!sharding || !sharding->isSharded(rank - 2),
                    "{}: the tokens of %{} must not be sharded", op.name, log_sums.name);
}

void verifyAttention(const Program& program, const OpDef& op, const CallLibrary& call) {
  const Slot& result = program.slots[call.outputs[0]];
  const DType dtype = result.tensor.dtype;
  const size_t rank = result.tensor.rank();
  HEDDLE_USER_CHECK(dtype == DType::F16 || dtype == DType::BF16,
                    "{}: %{} is {}, expected f16 or bf16", op.name, result.name, name(dtype));
  HEDDLE_USER_CHECK(rank >= 2 && rank <= 4, "{}: %{} has rank {}, expected 2 to 4", op.name,
                    result.name, rank);
  HEDDLE_USER_CHECK(rank >= 3 || !libraryFlag(call, "gqa"),
                    "{}: gqa needs an axis of heads, %{} has rank {}", op.name, result.name, rank);
  std::vector<SlotId> slots = call.inputs;
  slots.insert(slots.end(), call.outputs.begin(), call.outputs.end());
  if (const std::optional<SlotId> log_sums = logSumsOf(call)) {
    verifyLogSums(op, program.slots[*log_sums], rank);
    slots.erase(slots.begin() + (isAttentionBackward(call) ? 5 : 4));
  }
  for (SlotId id : slots) {
    const Slot& slot = program.slots[id];
    expectType(op, slot, dtype);
    HEDDLE_USER_CHECK(slot.tensor.rank() == rank, "{}: %{} has rank {} and %{} rank {}", op.name,
                      slot.name, slot.tensor.rank(), result.name, rank);
    const std::optional<Sharding>& sharding = slot.tensor.sharding;
    HEDDLE_USER_CHECK(
        !sharding || (!sharding->isSharded(rank - 1) && !sharding->isSharded(rank - 2)),
        "{}: the tokens and the width of %{} must not be sharded", op.name, slot.name);
  }
}

}  // namespace

const OpDef* findLibraryOp(std::string_view name) {
  if (name == kAttention.name) return &kAttention;
  if (name == kAttentionBackward.name) return &kAttentionBackward;
  const OpDef* op = findOp(name);
  return op != nullptr && roleOf(op->kind) == OpRole::Library ? op : nullptr;
}

std::string noLibraryFunction(std::string_view name) {
  std::string all;
  for (const OpDef& op : opTable()) {
    if (findLibraryOp(op.name) == nullptr) continue;
    all += (all.empty() ? "" : ", ") + std::string(op.name);
  }
  return fmt::format("there is no library function {}; there are {}, {}, {}", name, all,
                     kAttention.name, kAttentionBackward.name);
}

std::string libraryArgumentsOf(const OpDef& op) {
  std::string out = operandCounts(op) + (op.arity == 1 ? " slot" : " slots");
  for (const AttrSpec& spec : op.attrs) {
    out += fmt::format(", {}={}", spec.name, spec.required ? "" : " (optional)");
  }
  return out;
}

void verifyLibrary(const Program& program, const CallLibrary& call) {
  const OpDef* op = findLibraryOp(call.function);
  if (op == nullptr) userError("{}", noLibraryFunction(call.function));
  verifyCounts(*op, call);
  verifyAttributes(*op, call);
  if (isAttention(call)) return verifyAttention(program, *op, call);
  if (op->kind == OpKind::Matmul) {
    const Slot& result = program.slots[call.outputs[0]];
    if (const Attr* dtype = findAttr(call, "dtype")) {
      expectType(*op, result, std::get<DType>(*dtype));
    }
    return;
  }
  verifyLines(program, *op, call);
  verifyTypes(program, *op, call);
}

std::optional<SlotId> logSumsOf(const CallLibrary& call) {
  const std::vector<SlotId>& slots = isAttentionBackward(call) ? call.inputs : call.outputs;
  const size_t without = isAttentionBackward(call) ? 4 : 1;
  if (!isAttention(call) || slots.size() == without) return std::nullopt;
  return slots.back();
}

int64_t libraryAxis(const CallLibrary& call) {
  const Attr* axis = findAttr(call, "axis");
  HEDDLE_CHECK(axis != nullptr && std::holds_alternative<int64_t>(*axis), "{} without an axis",
               call.function);
  return std::get<int64_t>(*axis);
}

std::optional<int64_t> libraryCount(const CallLibrary& call, std::string_view name) {
  const Attr* count = findAttr(call, name);
  if (count == nullptr || !std::holds_alternative<int64_t>(*count)) return std::nullopt;
  return std::get<int64_t>(*count);
}

std::optional<double> libraryNumber(const CallLibrary& call, std::string_view name) {
  const Attr* number = findAttr(call, name);
  if (number == nullptr || !std::holds_alternative<double>(*number)) return std::nullopt;
  return std::get<double>(*number);
}

bool libraryFlag(const CallLibrary& call, std::string_view name) {
  const Attr* flag = findAttr(call, name);
  return flag != nullptr && std::holds_alternative<bool>(*flag) && std::get<bool>(*flag);
}

}  // namespace heddle::host
