#include <fmt/format.h>

#include <set>

#include "host/program/visit.h"
#include "host/text/program_rules.h"
#include "host/text/program_text.h"
#include "host/text/text_names.h"
#include "ir/base/check.h"
#include "ir/graph/print_values.h"
#include "ir/text/text_pieces.h"

namespace heddle::host {
namespace {

std::string word(const std::string& name) { return isWord(name) ? name : heddle::quoted(name); }

template <class Items, class PrintItem>
std::string join(const Items& items, PrintItem print_item, std::string_view separator = ", ") {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out += separator;
    out += print_item(item);
  }
  return out;
}

// Prints one instruction, on one line. For a For or If, the text ends before the brace of the first
// body.
class InstructionPrinter {
 public:
  explicit InstructionPrinter(const Program& program) : program_(program) {}

  // Returns the regular form of an instruction: the slot, token or event that it defines, its
  // mnemonic, all other slots, tokens and events, and the stream. An instruction with fields of
  // other kinds needs its own overload.
  template <class Regular>
  std::string operator()(const Regular& x) const {
    std::string defined, named;
    forEachFieldOf(x, [&](const auto& field, const auto& member) {
      constexpr FieldKind kKind = std::decay_t<decltype(field)>::kKind;
      if constexpr (kKind == FieldKind::StreamUse) {
        named += stream(member);
      } else {
        const std::string name = nameOf(member);
        field.role.defines ? defined = name + " = " : named += " " + name;
      }
    });
    return defined + std::string(Regular::kMnemonic) + named;
  }
  std::string operator()(const Allocate& x) const {
    return slot(x.out) + " = allocate" + (x.reuse.empty() ? "" : " reuse=" + slots(x.reuse)) +
           stream(x.stream);
  }
  std::string operator()(const Alias& x) const {
    return slot(x.out) + " = alias " + slot(x.in) + std::visit(ViewPrinter(), x.view);
  }
  std::string operator()(const Evaluate& x) const {
    return slot(x.out) + " = evaluate " + std::visit(*this, x.expression);
  }
  std::string operator()(const Size& x) const { return x.str(); }
  std::string operator()(const Scalar& x) const {
    const auto* integer = std::get_if<int64_t>(&x);  // without i64(), it would be parsed as a Size
    return integer ? fmt::format("i64({})", *integer) : printScalar(x);
  }
  std::string operator()(const Evaluate::Apply& x) const {
    HEDDLE_CHECK(x.op != nullptr, "an evaluate without an op");
    return std::string(x.op->name) + slots(x.args);
  }
  std::string operator()(const LaunchKernel& x) const {
    return "launch @" + item(program_.kernels, x.kernel).name + slots(x.inputs) + " -> " +
           slots(x.outputs) + stream(x.stream);
  }
  std::string operator()(const CallLibrary& x) const {
    std::string arguments = slots(x.inputs);
    arguments.pop_back();
    for (const auto& [name, value] : x.attrs) {
      arguments += (arguments.size() > 1 ? ", " : "") + name + "=" + printAttr(value);
    }
    return "call_library " + word(x.function) + arguments + ") -> " + slots(x.outputs) +
           (x.spare_sms != 0 ? fmt::format(" spare_sms={}", x.spare_sms) : "") + stream(x.stream);
  }
  std::string operator()(const Copy& x) const {
    return "copy " + slot(x.in) + " -> " + slot(x.out) + stream(x.stream);
  }
  std::string operator()(const Communicate& x) const {
    std::string moved;
    for (const auto& [in, out] : x.pairs()) {
      moved += (moved.empty() ? " " : ", ") + slot(in) + " -> " + slot(out);
    }
    return token(x.token) + " = communicate " + std::string(collectiveName(x.kind)) + moved +
           team(x.team) + (x.reduce ? " op=" + std::string(name(*x.reduce)) : "") +
           (x.root ? " root=" + x.root->str() : "") +
           (x.send_counts ? " send_counts=" + slot(*x.send_counts) : "") +
           (x.recv_counts ? " recv_counts=" + slot(*x.recv_counts) : "") +
           (x.carrier.ctas != 0 ? fmt::format(" ctas={}", x.carrier.ctas) : "") +
           (x.carrier.copy_channel != 0 ? fmt::format(" lane={}", x.carrier.copy_channel) : "") +
           stream(x.stream);
  }
  std::string operator()(const Send& x) const { return peer(x, "send ", " to="); }
  std::string operator()(const Recv& x) const { return peer(x, "recv ", " from="); }
  std::string operator()(const For& x) const {
    return fmt::format("for {} in {} .. {}", word(x.index), x.start.str(), x.stop.str());
  }
  std::string operator()(const If& x) const {
    const auto* size = std::get_if<Size>(&x.predicate.lhs);
    return fmt::format("if {} {} {}", size ? size->str() : slot(std::get<SlotId>(x.predicate.lhs)),
                       compareName(x.predicate.compare), x.predicate.rhs.str());
  }
  std::string operator()(const Call& x) const {
    return "call @" + x.program + slots(x.inputs) + " -> " + slots(x.outputs);
  }

 private:
  struct ViewPrinter {
    std::string operator()(const Alias::Same&) const { return ""; }
    std::string operator()(const Alias::Reshape&) const { return " reshape"; }
    std::string operator()(const Alias::Permute& x) const {
      return " permute=" + printInts(x.axes);
    }
    std::string operator()(const Alias::Slice& x) const {
      return " slice starts=" + printSizes(x.starts) + " stops=" + printSizes(x.stops) +
             (x.steps.empty() ? "" : " steps=" + printInts(x.steps));
    }
    std::string operator()(const Alias::Index& x) const { return "[" + x.index.str() + "]"; }
    std::string operator()(const Alias::Shard&) const { return " shard"; }
    std::string operator()(const Alias::Unpad&) const { return " unpad"; }
    std::string operator()(const Alias::Expand& x) const { return " expand=" + printInts(x.axes); }
    std::string operator()(const Alias::Diagonal& x) const {
      return " diagonal=" + printInts({x.first, x.second});
    }
  };

  // Returns the item with this id. Throws UserError if the id is out of range, because messages
  // also print instructions of illegal programs.
  template <class IdType, class Item>
  static const Item& item(const IdVector<IdType, Item>& items, IdType id) {
    HEDDLE_USER_CHECK(items.has(id), "an instruction refers to entry {}, there are {}", id,
                      items.size());
    return items[id];
  }
  std::string slot(SlotId id) const { return printValueName(item(program_.slots, id).name); }
  std::string slots(const std::vector<SlotId>& ids) const {
    return "(" + join(ids, [&](SlotId id) { return slot(id); }) + ")";
  }
  std::string nameOf(SlotId id) const { return slot(id); }
  std::string nameOf(TokenId id) const { return token(id); }
  std::string nameOf(EventId id) const { return event(id); }
  std::string token(TokenId id) const { return "$" + word(item(program_.tokens, id)); }
  std::string event(EventId id) const { return "!" + word(item(program_.events, id)); }
  static std::string stream(StreamId id) { return fmt::format(" stream={}", id); }
  std::string team(const Team& team) const {
    if (!team.mesh.valid()) return "";
    std::string out = " team=@" + item(program_.meshes, team.mesh).name;
    if (team.axes.empty()) return out;
    return out + "[" + join(team.axes, [](MeshAxis axis) { return std::string(name(axis)); }) + "]";
  }
  template <class PointToPoint>
  std::string peer(const PointToPoint& x, std::string_view verb, std::string_view to) const {
    return (x.token ? token(*x.token) + " = " : "") + std::string(verb) + slot(x.slot) +
           std::string(to) + x.peer.str() + team(x.team) + stream(x.stream);
  }

  const Program& program_;
};

std::string indented(const std::string& text, std::string_view indent) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    if (end == std::string::npos) end = text.size();
    if (end > at) out += std::string(indent) + text.substr(at, end - at);
    out += '\n';
    at = end + 1;
  }
  return out;
}

// Returns ` candidate=2` or ` candidate="loops unroll=2"`, or "" if the kernel names no candidate.
std::string candidateText(const Kernel& kernel) {
  if (kernel.candidate.empty()) return {};
  const bool is_index = kernel.candidate.find_first_not_of("0123456789") == std::string::npos;
  return " candidate=" + (is_index ? kernel.candidate : heddle::quoted(kernel.candidate));
}

// Prints one program with its meshes and kernels, but without its callees.
class SectionPrinter {
 public:
  explicit SectionPrinter(const Program& program) : program_(program) {}

  std::string run() {
    out_ = printMeshes(program_.meshes);
    for (const Kernel& kernel : program_.kernels) {
      out_ += "kernel @" + kernel.name + candidateText(kernel) + " {\n" +
              indented(printFusionBody(kernel.segment), "  ") + "}\n";
    }
    head();
    for (const SizeGuard& guard : program_.guards) {
      out_ += fmt::format("  guard {} {} {} {}\n", guard.a.str(),
                          guard.at_most ? "<=" : "==", guard.b.str(), heddle::quoted(guard.source));
    }
    declarations();
    body();
    out_ += "}\n";
    return std::move(out_);
  }

 private:
  std::string type(const Slot& slot) const {
    if (slot.isList()) return "list " + printTensorType(slot.tensor, program_.meshes);
    if (slot.is_scalar) return std::string(name(slot.tensor.dtype));
    std::string out = printTensorType(slot.tensor, program_.meshes);
    return slot.alloc.empty() ? out : out + " alloc=" + printSizes(slot.alloc);
  }

  std::string outputs() const {
    std::string out;
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const auto nameOf = [&](SlotId id) { return printValueName(program_.slots.at(id).name); };
      out += (i > 0 ? ", " : "") + nameOf(program_.outputs[i]);
      const auto reuse = program_.reuses.find(i);
      if (reuse == program_.reuses.end()) continue;
      out += (reuse->second.required ? " in! " : " in ") + nameOf(reuse->second.input);
    }
    return out;
  }

  void head() {
    const auto input = [&](SlotId id) {
      const Slot& slot = program_.slots.at(id);
      return printValueName(slot.name) + ": " + type(slot) +
             (slot.default_value ? " = " + printScalar(*slot.default_value) : "");
    };
    const std::string start = "program " + program_.name + "(";
    const std::string end = ") -> (" + outputs() + ")";
    std::string line = start + join(program_.inputs, input) + end;
    if (line.size() > 98) line = start + "\n    " + join(program_.inputs, input, ",\n    ") + end;
    if (!program_.size_defaults.empty()) {
      line += "\n    with " + join(program_.size_defaults, [](const auto& entry) {
                return fmt::format("{} = {}", entry.first, entry.second);
              });
    }
    out_ += line + " {\n";
  }

  void declarations() {
    const std::set<SlotId> inputs(program_.inputs.begin(), program_.inputs.end());
    for (SlotId id : program_.slots.ids()) {
      if (inputs.count(id) > 0) continue;
      const Slot& slot = program_.slots[id];
      out_ += "  slot " + printValueName(slot.name) + ": " + type(slot) + "\n";
    }
  }

  // Prints the instructions. The function is iterative, because programs may be nested deeply.
  void body() {
    struct Open {
      const std::vector<Instruction>* list;
      size_t next = 0;
      const std::vector<Instruction>* otherwise = nullptr;  // the else_body to print afterwards
    };
    std::vector<Open> open{{&program_.body}};
    while (!open.empty()) {
      Open& top = open.back();
      if (top.next == top.list->size()) {
        const auto* otherwise = top.otherwise;
        open.pop_back();
        if (open.empty()) return;
        const std::string indent(2 * open.size(), ' ');
        if (otherwise != nullptr && !otherwise->empty()) {
          out_ += indent + "} else {\n";
          open.push_back({otherwise});
        } else {
          out_ += indent + "}\n";
        }
        continue;
      }
      const Instruction& x = (*top.list)[top.next++];
      out_ += std::string(2 * open.size(), ' ') + printInstruction(program_, x);
      std::vector<const std::vector<Instruction>*> bodies;
      forEachBody(x.op, [&](const std::vector<Instruction>& each) { bodies.push_back(&each); });
      out_ += bodies.empty() ? "\n" : " {\n";
      if (!bodies.empty()) open.push_back({bodies[0], 0, bodies.size() > 1 ? bodies[1] : nullptr});
    }
  }

  const Program& program_;
  std::string out_;
};

// Appends the program and all its callees to `order`. Callees come before their callers. Each name
// occurs once. Throws UserError if two different programs have one name.
void collect(const Program& program, std::vector<const Program*>& order) {
  for (const Program& callee : program.callees) collect(callee, order);
  for (const Program* seen : order) {
    if (seen->name != program.name) continue;
    HEDDLE_USER_CHECK(sameProgram(*seen, program), "{}", twoPrograms(program.name));
    return;
  }
  order.push_back(&program);
}

}  // namespace

std::string printInstruction(const Program& program, const Instruction& instruction) {
  std::string on;
  if (instruction.on.valid()) {
    on = "on @" + program.meshes.at(instruction.on).name + ": ";
  }
  return on + std::visit(InstructionPrinter(program), instruction.op);
}

std::vector<std::string> instructionTexts(const Program& program) {
  std::vector<std::string> out;
  forEachInstruction(program.body, [&](const Instruction& x, InstructionIndex) {
    out.push_back(printInstruction(program, x));
  });
  return out;
}

std::string print(const Program& program) {
  std::vector<const Program*> order;
  collect(program, order);
  std::string out(kVersionLine);
  out += '\n';
  for (const Program* section : order) out += SectionPrinter(*section).run();
  return out;
}

}  // namespace heddle::host
