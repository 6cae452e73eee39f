#include "host/passes/chunk/overlap_patterns.h"

#include <algorithm>
#include <map>

#include "host/passes/analysis/buffer_accesses.h"
#include "host/passes/analysis/next_conflict.h"
#include "host/passes/analysis/slot_uses.h"
#include "host/passes/analysis/token_uses.h"
#include "host/passes/chunk/row_cuts.h"
#include "host/passes/chunk/rowwise_kernel.h"
#include "host/program/visit.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

using comm::CollectiveKind;

class OverlapFinder {
 public:
  OverlapFinder(const Program& program, const BufferAccesses& items)
      : program_(program),
        items_(items),
        conflicts_(items),
        uses_(slotUsesOf(program)),
        tokens_(tokenUsesOf(program)),
        taken_(program.body.size(), false) {}

  OverlapMatches run() {
    for (size_t i = 0; i < program_.body.size(); ++i) {
      // Send and Recv are not split.
      const auto* x = std::get_if<Communicate>(&at(i).op);
      if (x == nullptr || !isCandidate(*x)) continue;
      OverlapMatch match;
      match.kind = x->kind;
      match.post = i;
      match.team = teamSize(x->team);
      std::string why = lacks(match, *x);
      if (!why.empty()) {
        found_.whole.push_back({i, std::move(why)});
        continue;
      }
      for (size_t i : membersOf(match)) taken_[i] = true;
      findFront(match);
      if (match.kind == CollectiveKind::Allgather) {
        gathers_.emplace(match.matmuls.front(), found_.matches.size());
      }
      found_.matches.push_back(std::move(match));
    }
    return std::move(found_);
  }

 private:
  const Slot& slot(SlotId id) const { return program_.slots[id]; }
  const SlotUses& uses(SlotId id) const { return uses_[id]; }
  const Instruction& at(size_t i) const { return program_.body[i]; }
  const CallLibrary& call(size_t i) const { return std::get<CallLibrary>(at(i).op); }

  int64_t teamSize(const Team& team) const {
    const DeviceMesh& mesh = program_.meshes[team.mesh];
    int64_t devices = 1;
    for (MeshAxis axis : team.axes) devices *= mesh.size(axis);
    return devices;
  }

  bool isCandidate(const Communicate& x) const {
    const bool known = x.kind == CollectiveKind::Allgather ||
                       x.kind == CollectiveKind::ReduceScatter ||
                       x.kind == CollectiveKind::Allreduce;
    return known && x.team.mesh.valid() && !program_.meshes[x.team.mesh].sizeIsFromJob() &&
           teamSize(x.team) > 1;
  }

  // Fills in a match for the collective `x`. Returns an empty string, or the reason why the
  // collective cannot be split.
  std::string lacks(OverlapMatch& match, const Communicate& x) const {
    const bool gathers = x.kind == CollectiveKind::Allgather;
    const SlotId between = gathers ? x.out : x.in;
    if (!x.also.empty()) return "it is posted together with others";
    const std::optional<size_t> wait = waitOf(match.post, x.token);
    if (!wait) return "it does not have exactly one wait in the same body";
    match.wait = *wait;
    std::string why = gathers ? findReaders(match, between, true) : findMakers(match, between);
    if (!why.empty()) return why;
    for (size_t i : membersOf(match)) {
      if (at(i).on != at(match.post).on || taken_[i])
        return "its matrix product is split with another collective or runs on other ranks";
    }
    if (!isInOrder(match)) return "its matrix product cannot move next to it";
    match.order = slot(between).tensor.allocationOrder();
    match.cuts = cutsOf(program_, uses_, match);
    return match.cuts.empty() ? "its matrix product has no rows outermost in memory" : "";
  }

  // Finds the matrix products that read the gathered tensor `read`. If a kernel reads the gathered
  // tensor, the function calls itself with the result of the kernel. Returns an empty string, or
  // the reason why the collective cannot be split.
  std::string findReaders(OverlapMatch& match, SlotId read, bool may_have_kernel) const {
    if (!isOwn(read, match)) return notOwn(read);
    for (size_t use : uses(read).at) {
      if (use == match.post || use == match.allocates.back() || use == match.kernel) continue;
      if (isMatmul(use, read, true)) {
        match.matmuls.push_back(use);
        continue;
      }
      // Only the kernel of a LaunchKernel can be generated again for the rows of a chunk.
      const auto* launch = std::get_if<LaunchKernel>(&at(use).op);
      if (launch == nullptr || !may_have_kernel || !match.matmuls.empty() || readersOf(read) > 1 ||
          !anyMatmulReads(launch->outputs)) {
        return fmt::format("%{} has readers other than matrix products by a matrix",
                           slot(read).name);
      }
      std::string why = takeKernel(match, use, read);
      return why.empty() ? findReaders(match, launch->outputs[0], false) : why;
    }
    return match.matmuls.empty() ? fmt::format("no matrix product reads %{}", slot(read).name) : "";
  }

  // Returns the number of instructions that read a slot. All uses of the slot are reads, except its
  // Allocate and the instruction that writes it.
  size_t readersOf(SlotId id) const { return uses(id).at.size() - 2; }

  bool anyMatmulReads(const std::vector<SlotId>& of) const {
    return std::any_of(of.begin(), of.end(), [&](SlotId id) {
      const std::vector<size_t>& at = uses(id).at;
      return std::any_of(at.begin(), at.end(), [&](size_t i) { return isMatmul(i, id, true); });
    });
  }

  bool anyMatmulMakes(const std::vector<SlotId>& of) const {
    return std::any_of(of.begin(), of.end(), [&](SlotId id) {
      const std::vector<size_t>& at = uses(id).at;
      return std::any_of(at.begin(), at.end(), [&](size_t i) { return isMatmul(i, id, false); });
    });
  }

  // Finds the matrix product that computes `made`. If a kernel computes `made`, finds this kernel
  // and the matrix products whose results the kernel reads. Returns an empty string, or the reason
  // why the stage cannot be split.
  std::string findMakers(ChunkStage& match, SlotId made) const {
    if (!isOwn(made, match)) return notOwn(made);
    if (uses(made).at.size() != 3) return fmt::format("%{} has other uses", slot(made).name);
    const size_t maker = uses(made).at[1];
    if (isMatmul(maker, made, false)) {
      match.matmuls.push_back(maker);
      return {};
    }
    // Only the kernel of a LaunchKernel can be generated again for the rows of a chunk.
    const auto* launch = std::get_if<LaunchKernel>(&at(maker).op);
    if (launch == nullptr || !anyMatmulMakes(launch->inputs)) {
      return fmt::format("no matrix product computes %{}", slot(made).name);
    }
    std::string why = takeKernel(match, maker, made);
    if (!why.empty()) return why;
    for (size_t i = 0; i < launch->inputs.size(); ++i) {
      const SlotId part = launch->inputs[i];
      if (!match.kernel_rows[i] || uses(part).at.size() != 3) continue;
      if (!isMatmul(uses(part).at[1], part, false)) continue;
      // A matrix product stays unsplit if chunks may not replace its result `part`, for example
      // because `part` is an output of the program.
      if (!isOwn(part, match)) continue;
      match.matmuls.push_back(uses(part).at[1]);
    }
    std::sort(match.matmuls.begin(), match.matmuls.end());
    return match.matmuls.empty() ? fmt::format("no matrix product computes %{}", slot(made).name)
                                 : "";
  }

  // Adds the kernel of the LaunchKernel at index `position` to the match. Returns an empty string,
  // or the reason why the kernel cannot be split into rows of `between`.
  std::string takeKernel(ChunkStage& match, size_t position, SlotId between) const {
    const auto& launch = std::get<LaunchKernel>(at(position).op);
    const Kernel& kernel = program_.kernels[launch.kernel];
    RowwiseKernel rows = rowwiseKernelOf(kernel.segment, slot(between).tensor.rank());
    const std::vector<SlotId>& in = launch.inputs;
    for (SlotId id : in) {
      if (rows.why.empty() && std::count(in.begin(), in.end(), id) > 1)
        rows.why = "it reads an operand twice";
    }
    if (!rows.why.empty()) {
      return fmt::format("kernel {} between it and its matrix product: {}", kernel.name, rows.why);
    }
    match.kernel = position;
    match.kernel_rows = std::move(rows.has_rows);
    return {};
  }

  std::string notOwn(SlotId id) const {
    return fmt::format("%{} is not allocated for it alone", slot(id).name);
  }

  // Returns the instructions that are split together with the collective.
  static std::vector<size_t> membersOf(const ChunkStage& match) {
    std::vector<size_t> members = match.matmuls;
    if (match.kernel) members.push_back(*match.kernel);
    return members;
  }

  // Returns whether all instructions of a match may move to the position at which ChunkWriter
  // (chunk_writer.h) writes their chunks. For a reduction, this is the position of its post. For a
  // kernel on gathered rows, it is the position of the first matrix product. The matrix products
  // that read gathered rows do not move.
  bool isInOrder(const OverlapMatch& match) const {
    if (match.kind == CollectiveKind::Allgather) {
      if (match.matmuls.front() < match.wait) return false;
      if (!match.kernel) return true;
      // The first chunk of the matrix product runs before the second chunk of the kernel. The
      // matrix product must therefore not write memory that the kernel accesses.
      return *match.kernel > match.wait && *match.kernel < match.matmuls.front() &&
             mayMove(*match.kernel, match.matmuls.front(), {}) &&
             isApart(*match.kernel, match.matmuls.front());
    }
    const std::vector<size_t> members = membersOf(match);
    return std::all_of(members.begin(), members.end(), [&](size_t i) {
      return i < match.post && (!match.kernel || i <= *match.kernel) &&
             mayMove(i, match.post, members) && isApart(i, match.post);
    });
  }

  // --- two stages -------------------------------------------------------------------------------

  // Finds the front of a reduction (OverlapMatch::front). Finds none in these cases:
  // - The match has several matrix products, or its matrix product reads the rows twice.
  // - No stage computes the rows for this match alone, on the ranks that execute the match.
  // - An instruction of the stage could not move down to the post of the reduction.
  // - An instruction of the stage belongs to another match, which is not the gather of this match.
  void findFront(OverlapMatch& match) const {
    if (match.kind == CollectiveKind::Allgather || match.matmuls.size() != 1) return;
    ChunkStage front;
    const std::vector<SlotId>& read = call(match.matmuls.front()).inputs;
    const SlotId rows = read[0];
    if (std::count(read.begin(), read.end(), rows) != 1 || uses(rows).defined.size() != 1 ||
        !findMakers(front, rows).empty()) {
      return;
    }
    std::vector<size_t> members = membersOf(match);
    const std::vector<size_t> before = membersOf(front);
    members.insert(members.end(), before.begin(), before.end());
    const bool moves = std::all_of(before.begin(), before.end(), [&](size_t i) {
      return at(i).on == at(match.post).on && i < match.matmuls.front() &&
             (!front.kernel || i <= *front.kernel) && mayMove(i, match.post, members) &&
             isApart(i, match.post);
    });
    if (!moves) return;
    match.gather = gatherOf(match, front);
    const bool is_taken =
        std::any_of(before.begin(), before.end(), [&](size_t i) { return taken_[i]; });
    if (!is_taken || match.gather) match.front = std::move(front);
  }

  // Returns the post of the gather whose result the front reads. Returns nullopt in these cases:
  // - The matrix products that read this result are not exactly those of the front.
  // - A kernel reads the result before the matrix products of the front.
  // - The match is no reduce-scatter, or its chunks do not contain the same rows as the chunks of
  //   the gather, on the same ranks.
  std::optional<size_t> gatherOf(const OverlapMatch& match, const ChunkStage& front) const {
    const auto [first, last] = gathers_.equal_range(front.matmuls.front());
    for (auto each = first; each != last; ++each) {
      const OverlapMatch& other = found_.matches[each->second];
      if (other.matmuls != front.matmuls) continue;
      const auto& from = std::get<Communicate>(at(other.post).op);
      const auto& to = std::get<Communicate>(at(match.post).op);
      const bool alike = match.kind == CollectiveKind::ReduceScatter && !other.kernel &&
                         from.team == to.team && other.order == match.order &&
                         movedAxis(program_, from) == movedAxis(program_, to) &&
                         at(other.post).on == at(match.post).on;
      if (alike) return other.post;
    }
    return std::nullopt;
  }

  // --- conditions for moving an instruction ------------------------------------------------------

  // Returns whether instruction `from` may move down to index `to`. The result is false if an
  // instruction between the two indices
  //   accesses memory that `from` writes,
  //   writes memory that `from` reads, or
  //   redefines a slot of `from`.
  // Ignores the instructions in `members`, because they move too.
  bool mayMove(size_t from, size_t to, const std::vector<size_t>& members) const {
    const auto moves_too = [&](size_t i) {
      return std::find(members.begin(), members.end(), i) != members.end();
    };
    size_t conflict = conflicts_.find(from, from);
    while (conflict < to && moves_too(conflict)) conflict = conflicts_.find(from, conflict);
    bool redefines = false;
    forEachSlot(at(from).op, [&](SlotId id, FieldRole) {
      const std::vector<size_t>& defined = uses(id).defined;
      auto next = std::upper_bound(defined.begin(), defined.end(), from);
      while (next != defined.end() && *next < to && moves_too(*next)) ++next;
      redefines = redefines || (next != defined.end() && *next < to);
    });
    return conflict >= to && !redefines;
  }

  // Returns whether instruction `later` writes no memory that `instruction` accesses.
  bool isApart(size_t instruction, size_t later) const {
    const auto& touched = items_.items[instruction].accesses;
    return std::none_of(
        items_.items[later].accesses.begin(), items_.items[later].accesses.end(),
        [&](const ItemAccess& access) {
          return access.write &&
                 std::any_of(touched.begin(), touched.end(), [&](const ItemAccess& mine) {
                   return mine.root == access.root && items_.mayOverlap(mine, access);
                 });
        });
  }

  // --- conditions for a slot or an instruction ---------------------------------------------------

  // Returns the only wait for a token. Returns nullopt if there is none after the post, or if
  // several instructions post the token or wait for it.
  std::optional<size_t> waitOf(size_t post, TokenId token) const {
    const TokenUses& of = tokens_[token];
    if (of.posts.size() != 1 || of.waits.size() != 1 || of.waits.front() < post) {
      return std::nullopt;
    }
    return of.waits.front();
  }

  // Returns whether chunks may replace the slot. If they may, adds the Allocate of the slot to the
  // match. Conditions:
  // - One Allocate is the only definition of the slot, and all uses are at the top level.
  // - The slot is neither an input nor an output of the program.
  // - The same ranks execute the Allocate and the last use.
  bool isOwn(SlotId id, ChunkStage& match) const {
    // Only an Allocate creates memory of its own. An Alias may name memory of another slot.
    const SlotUses& of = uses(id);
    if (of.nested || of.defined.size() != 1 ||
        !std::holds_alternative<Allocate>(at(of.defined.front()).op) ||
        at(of.defined.front()).on != at(of.at.back()).on) {
      return false;
    }
    match.allocates.push_back(of.defined.front());
    return true;
  }

  // Returns whether instruction `i` is a matrix product whose second operand is a matrix, and whose
  // first operand and result have equal numbers of axes.
  //   `reads` true: `between` must be the first operand and no other operand.
  //   `reads` false: `between` must be the result and no operand.
  bool isMatmul(size_t i, SlotId between, bool reads) const {
    // Every matrix product is a library call: no kernel contains one.
    const auto* matmul = std::get_if<CallLibrary>(&at(i).op);
    if (matmul == nullptr || (matmul->function != "matmul" && matmul->function != "linear")) {
      return false;
    }
    const std::vector<SlotId>& inputs = matmul->inputs;
    const SlotId rows = inputs[0];
    const SlotId result = matmul->outputs[0];
    const size_t rank = slot(rows).tensor.rank();
    if (slot(inputs[1]).tensor.rank() != 2 || rank < 2 || slot(result).tensor.rank() != rank ||
        std::count(inputs.begin(), inputs.end(), between) != (reads ? 1 : 0)) {
      return false;
    }
    // `rows` and `result` must have at most one definition. Each then names the same tensor at
    // every instruction.
    return uses(result).defined.size() == 1 && uses(rows).defined.size() <= 1 &&
           (reads ? rows : result) == between;
  }

  const Program& program_;
  const BufferAccesses& items_;
  const NextConflict conflicts_;
  const IdVector<SlotId, SlotUses> uses_;
  const IdVector<TokenId, TokenUses> tokens_;
  std::vector<bool> taken_;  // per instruction; true: it belongs to a match
  OverlapMatches found_;
  // For allgathers: index of the first matrix product -> index of the match in found_.matches.
  std::multimap<size_t, size_t> gathers_;
};

}  // namespace

OverlapMatches findOverlapPatterns(const Program& program) {
  const BufferAccesses items = bufferAccessesOf(program);
  if (program.streams() > 1 || !isUnordered(program, items)) return {};
  return OverlapFinder(program, items).run();
}

}  // namespace heddle::host
