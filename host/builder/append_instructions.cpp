// The functions of ProgramBuilder that append instructions.
#include <algorithm>

#include "host/builder/builder_state.h"
#include "host/program/library_op.h"

namespace heddle::host {
namespace {

// Sorts the attributes of a library call in the order of OpDef::attrs. Unknown attributes come
// last; verifyLibrary() reports them. Throws UserError if an attribute occurs twice.
void sortAttrs(CallLibrary& call) {
  std::set<std::string_view> seen;
  for (const auto& [name, value] : call.attrs) {
    HEDDLE_USER_CHECK(seen.insert(name).second, "{}", repeatedAttribute(name));
  }
  const OpDef* op = findLibraryOp(call.function);
  if (op == nullptr) return;
  const auto position = [&](const std::pair<std::string, Attr>& attr) {
    return std::find_if(op->attrs.begin(), op->attrs.end(),
                        [&](const AttrSpec& spec) { return spec.name == attr.first; }) -
           op->attrs.begin();
  };
  std::stable_sort(call.attrs.begin(), call.attrs.end(),
                   [&](const auto& a, const auto& b) { return position(a) < position(b); });
}

}  // namespace

// --- memory, views and values on the host ------------------------------------------------------

SlotRef ProgramBuilder::allocate(SlotRef out, StreamId stream, const Slots& reuse) {
  State& s = state();
  s.append([&] { return Allocate{s.id(out), stream, s.ids(reuse)}; });
  return out;
}

void ProgramBuilder::free(SlotRef slot, StreamId stream) {
  State& s = state();
  s.append([&] { return Free{s.id(slot), stream}; });
}

SlotRef ProgramBuilder::alias(SlotRef out, SlotRef in, Alias::View view) {
  State& s = state();
  s.append([&] { return Alias{s.id(out), s.id(in), std::move(view)}; });
  return out;
}

SlotRef ProgramBuilder::evaluate(SlotRef out, const Size& size) {
  State& s = state();
  s.append([&] { return Evaluate{s.id(out), size}; });
  return out;
}

SlotRef ProgramBuilder::evaluate(SlotRef out, std::string_view pointwise_op,
                                 const Slots& operands) {
  State& s = state();
  s.append([&] {
    const std::string why = pointwiseViolation(pointwise_op);
    HEDDLE_USER_CHECK(why.empty(), "{}", why);
    return Evaluate{s.id(out), Evaluate::Apply{findOp(pointwise_op), s.ids(operands)}};
  });
  return out;
}

SlotRef ProgramBuilder::constant(SlotRef out, Scalar value) {
  State& s = state();
  s.append([&] { return Evaluate{s.id(out), value}; });
  return out;
}

SlotRef ProgramBuilder::readBack(SlotRef out, SlotRef in, StreamId stream) {
  State& s = state();
  s.append([&] { return ReadBack{s.id(out), s.id(in), stream}; });
  return out;
}

// --- work --------------------------------------------------------------------------------------

void ProgramBuilder::launch(KernelRef kernel, const Slots& inputs, const Slots& outputs,
                            StreamId stream) {
  State& s = state();
  s.append([&] { return LaunchKernel{s.id(kernel), s.ids(inputs), s.ids(outputs), stream}; });
}

void ProgramBuilder::callLibrary(std::string function, const Slots& inputs, const Slots& outputs,
                                 const LibraryOptions& options) {
  State& s = state();
  s.append([&] {
    CallLibrary call{function,       s.ids(inputs), s.ids(outputs),
                     options.stream, options.attrs, options.spare_sms};
    sortAttrs(call);
    return call;
  });
}

void ProgramBuilder::copy(SlotRef in, SlotRef out, StreamId stream) {
  State& s = state();
  s.append([&] { return Copy{s.id(out), s.id(in), stream}; });
}

void ProgramBuilder::check(SlotRef slot, StreamId stream) {
  State& s = state();
  s.append([&] { return Check{s.id(slot), stream}; });
}

void ProgramBuilder::print(SlotRef slot, StreamId stream) {
  State& s = state();
  s.append([&] { return Print{s.id(slot), stream}; });
}

// --- communication -----------------------------------------------------------------------------

TokenRef ProgramBuilder::communicate(comm::CollectiveKind kind, SlotRef in, SlotRef out,
                                     const CollectiveOptions& options) {
  return communicate(kind, Pairs{{in, out}}, options);
}

TokenRef ProgramBuilder::communicate(comm::CollectiveKind kind, const Pairs& pairs,
                                     const CollectiveOptions& options) {
  State& s = state();
  TokenId token;
  s.append([&] {
    Communicate x{kind, kNoSlot, kNoSlot, options.team, options.op, options.stream, {}};
    for (const auto& [in, out] : pairs) x.also.push_back({s.id(in), s.id(out)});
    if (!pairs.empty()) {
      x.in = x.also.front().in;
      x.out = x.also.front().out;
      x.also.erase(x.also.begin());
    }
    x.root = options.root;
    if (options.send_counts) x.send_counts = s.id(*options.send_counts);
    if (options.recv_counts) x.recv_counts = s.id(*options.recv_counts);
    x.carrier = options.carrier;
    x.token = token = s.tokenOr(options.token);
    return x;
  });
  return s.ref(token);
}

TokenRef ProgramBuilder::barrier(const CollectiveOptions& options) {
  return communicate(comm::CollectiveKind::Barrier, Pairs{}, options);
}

template <class Transfer>
TokenRef ProgramBuilder::State::transfer(SlotRef slot, const Size& peer,
                                         const TransferOptions& options) {
  std::optional<TokenId> token;
  append([&] {
    if (options.token || !in_group) token = tokenOr(options.token);
    return Transfer{id(slot), peer, options.team, options.stream, token};
  });
  return token ? ref(*token) : TokenRef();
}

TokenRef ProgramBuilder::send(SlotRef slot, const Size& to, const TransferOptions& options) {
  return state().transfer<Send>(slot, to, options);
}

TokenRef ProgramBuilder::recv(SlotRef slot, const Size& from, const TransferOptions& options) {
  return state().transfer<Recv>(slot, from, options);
}

TokenRef ProgramBuilder::group(const Body& body, std::optional<TokenRef> token) {
  State& s = state();
  State::Scope scope(s);
  s.append([] { return GroupBegin{}; });
  s.in_group = true;
  body();
  TokenId id;
  s.append([&] { return GroupEnd{id = s.tokenOr(token)}; });
  scope.keep();
  return s.ref(id);
}

// --- order -------------------------------------------------------------------------------------

void ProgramBuilder::wait(TokenRef token, StreamId stream) {
  State& s = state();
  s.append([&] { return Wait{s.id(token), stream}; });
}

EventRef ProgramBuilder::recordEvent(StreamId stream) {
  State& s = state();
  return recordEvent(s.ref(s.addDefaultName(s.program.events, "e")), stream);
}

EventRef ProgramBuilder::recordEvent(EventRef event, StreamId stream) {
  State& s = state();
  s.append([&] { return RecordEvent{s.id(event), stream}; });
  return event;
}

void ProgramBuilder::waitEvent(EventRef event, StreamId stream) {
  State& s = state();
  s.append([&] { return WaitEvent{s.id(event), stream}; });
}

// --- control flow ------------------------------------------------------------------------------

void ProgramBuilder::loop(const Size& start, const Size& stop, const LoopBody& body) {
  loop(state().unusedIndex(), start, stop, body);
}

void ProgramBuilder::loop(std::string index, const Size& start, const Size& stop,
                          const LoopBody& body) {
  State& s = state();
  State::Scope scope(s);
  Instruction x = s.checked([&] { return For{index, start, stop, {}}; });
  const Index symbol = s.beginLoop(index);
  std::get<For>(x.op).body = s.collect([&] { body(symbol); });
  s.close(std::move(x));
  scope.keep();
}

void ProgramBuilder::State::branch(const std::function<Predicate()>& predicate,
                                   const Body& then_body, const Body& else_body) {
  Scope scope(*this);
  Instruction x = checked([&] { return If{predicate(), {}, {}}; });
  If& branch = std::get<If>(x.op);
  branch.then_body = collect(then_body);
  branch.else_body = collect(else_body);
  close(std::move(x));
  scope.keep();
}

void ProgramBuilder::branch(const Size& left, Compare compare, const Size& right,
                            const Body& then_body, const Body& else_body) {
  state().branch([&] { return Predicate{left, compare, right}; }, then_body, else_body);
}

void ProgramBuilder::branch(SlotRef left, Compare compare, const Size& right, const Body& then_body,
                            const Body& else_body) {
  State& s = state();
  s.branch([&] { return Predicate{s.id(left), compare, right}; }, then_body, else_body);
}

void ProgramBuilder::on(MeshRef mesh, const Body& body) {
  State& s = state();
  const MeshId id = s.id(mesh);
  HEDDLE_USER_CHECK(!s.on.valid(), "on @{}: the body of another `on` cannot contain it",
                    s.program.meshes[id].name);
  State::Scope scope(s);
  s.on = id;
  body();
  scope.keep();
}

void ProgramBuilder::call(const Program& callee, const Slots& inputs, const Slots& outputs) {
  State& s = state();
  s.append([&] {
    s.addCallee(callee);
    return Call{callee.name, s.ids(inputs), s.ids(outputs)};
  });
}

}  // namespace heddle::host
