#include "host/program/visit.h"

namespace heddle::host {
namespace {

class Renamer {
 public:
  explicit Renamer(const Renaming& renaming) : to_(renaming) {}

  void operator()(Allocate& x) const { slot(x.out); }
  void operator()(Free& x) const { slot(x.slot); }
  void operator()(Alias& x) const {
    slot(x.out);
    slot(x.in);
    if (auto* slice = std::get_if<Alias::Slice>(&x.view)) {
      for (Size& s : slice->starts) size(s);
      for (Size& s : slice->stops) size(s);
    }
    if (auto* at = std::get_if<Alias::Index>(&x.view)) size(at->index);
  }
  void operator()(Evaluate& x) const {
    slot(x.out);
    if (auto* s = std::get_if<Size>(&x.expression)) size(*s);
    if (auto* apply = std::get_if<Evaluate::Apply>(&x.expression)) slots(apply->args);
  }
  void operator()(LaunchKernel& x) const {
    if (to_.kernel) x.kernel = to_.kernel(x.kernel);
    slots(x.inputs);
    slots(x.outputs);
  }
  void operator()(CallLibrary& x) const {
    slots(x.inputs);
    slots(x.outputs);
    for (auto& [name, value] : x.attrs) {
      if (auto* sizes = std::get_if<std::vector<Size>>(&value)) {
        for (Size& s : *sizes) size(s);
      }
    }
  }
  void operator()(Copy& x) const {
    slot(x.in);
    slot(x.out);
  }
  void operator()(Communicate& x) const {
    token(x.token);
    if (x.in != kNoSlot) slot(x.in);
    if (x.out != kNoSlot) slot(x.out);
    for (Communicate::Pair& pair : x.also) {
      slot(pair.in);
      slot(pair.out);
    }
    team(x.team);
    if (x.root) size(*x.root);
    if (x.send_counts) slot(*x.send_counts);
    if (x.recv_counts) slot(*x.recv_counts);
  }
  void operator()(Send& x) const { peer(x); }
  void operator()(Recv& x) const { peer(x); }
  void operator()(GroupBegin&) const {}
  void operator()(GroupEnd& x) const { token(x.token); }
  void operator()(Wait& x) const { token(x.token); }
  void operator()(RecordEvent& x) const { event(x.event); }
  void operator()(WaitEvent& x) const { event(x.event); }
  void operator()(ReadBack& x) const {
    slot(x.out);
    slot(x.in);
  }
  void operator()(For& x) const {
    size(x.start);
    size(x.stop);
    if (to_.index) x.index = to_.index(x.index);
  }
  void operator()(If& x) const {
    if (auto* s = std::get_if<Size>(&x.predicate.lhs)) size(*s);
    if (auto* s = std::get_if<SlotId>(&x.predicate.lhs)) slot(*s);
    size(x.predicate.rhs);
  }
  void operator()(Call& x) const {
    slots(x.inputs);
    slots(x.outputs);
  }
  void operator()(Check& x) const { slot(x.slot); }
  void operator()(Print& x) const { slot(x.slot); }

 private:
  void slot(SlotId& id) const {
    if (to_.slot) id = to_.slot(id);
  }
  void slots(std::vector<SlotId>& ids) const {
    for (SlotId& id : ids) slot(id);
  }
  void token(TokenId& id) const {
    if (to_.token) id = to_.token(id);
  }
  void event(EventId& id) const {
    if (to_.event) id = to_.event(id);
  }
  void size(Size& s) const {
    if (to_.size) s = to_.size(s);
  }
  void team(Team& t) const {
    if (to_.mesh && t.mesh.valid()) t.mesh = to_.mesh(t.mesh);
  }
  template <class PointToPoint>
  void peer(PointToPoint& x) const {
    if (x.token) token(*x.token);
    slot(x.slot);
    size(x.peer);
    team(x.team);
  }

  const Renaming& to_;
};

}  // namespace

void rename(Instruction& instruction, const Renaming& renaming) {
  std::visit(Renamer(renaming), instruction.op);
  if (renaming.mesh && instruction.on.valid()) instruction.on = renaming.mesh(instruction.on);
}

}  // namespace heddle::host
