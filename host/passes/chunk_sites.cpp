#include "host/passes/chunk_sites.h"

#include <algorithm>

#include "host/passes/items.h"
#include "host/passes/nominal_sizes.h"
#include "host/visit.h"

namespace heddle::host {
namespace {

// Where a slot is named: positions in the body, and whether the slot could be another buffer there.
struct Uses {
  std::vector<size_t> at;  // ascending, without repeats
  std::vector<size_t> defined;
  bool nested = false;  // named within a For or If, or an input or output of the program
};

std::vector<Uses> usesOf(const Program& program) {
  std::vector<Uses> uses(program.slots.size());
  for (const auto* list : {&program.inputs, &program.outputs}) {
    for (SlotId id : *list) uses[static_cast<size_t>(id)].nested = true;
  }
  for (size_t i = 0; i < program.body.size(); ++i) {
    const Instruction& whole = program.body[i];
    forEachInstructionIn(&whole, &whole + 1, [&](const Instruction& x, InstructionIndex) {
      forEachSlot(x.op, [&](SlotId id, bool defines) {
        Uses& of = uses[static_cast<size_t>(id)];
        if (of.at.empty() || of.at.back() != i) of.at.push_back(i);
        if (defines) of.defined.push_back(i);
        if (&x != &whole) of.nested = true;
      });
    });
  }
  return uses;
}

class SiteFinder {
 public:
  SiteFinder(const Program& program, const Items& items)
      : program_(program),
        items_(items),
        uses_(usesOf(program)),
        taken_(program.body.size(), false) {}

  std::vector<ChunkSite> run() {
    for (size_t i = 0; i < program_.body.size(); ++i) {
      if (auto site = siteAt(i)) {
        for (size_t product : site->products) taken_[product] = true;
        sites_.push_back(std::move(*site));
      }
    }
    return std::move(sites_);
  }

 private:
  const Slot& slot(SlotId id) const { return program_.slots[static_cast<size_t>(id)]; }
  const Uses& uses(SlotId id) const { return uses_[static_cast<size_t>(id)]; }
  const Instruction& at(size_t i) const { return program_.body[i]; }

  std::optional<ChunkSite> siteAt(size_t post) const {
    const auto* x = std::get_if<Communicate>(&at(post).op);
    if (x == nullptr || x->team.mesh < 0 || !x->also.empty()) return std::nullopt;
    const DeviceMesh& mesh = program_.meshes[static_cast<size_t>(x->team.mesh)];
    if (mesh.sizeIsFromJob()) return std::nullopt;
    ChunkSite site{x->kind, 0, post, 0, {}, 1};
    for (MeshAxis axis : x->team.axes) site.team *= mesh.size(axis);
    const bool gathers = x->kind == comm::CollectiveKind::Allgather;
    const bool reduces = x->kind == comm::CollectiveKind::ReduceScatter ||
                         x->kind == comm::CollectiveKind::Allreduce;
    if (site.team < 2 || (!gathers && !reduces) || !isRowMajor(x->in) || !isRowMajor(x->out)) {
      return std::nullopt;
    }
    if (x->kind != comm::CollectiveKind::Allreduce && !movesRows(*x)) return std::nullopt;
    const SlotId between = gathers ? x->out : x->in;
    const std::optional<size_t> wait = waitOf(post, x->token);
    if (!wait || !isOwn(between, site)) return std::nullopt;
    site.wait = *wait;
    for (size_t use : uses(between).at) {
      if (use == site.allocate || use == post) continue;
      if (!isProduct(use, between, gathers) || at(use).on != at(post).on || taken_[use]) {
        return std::nullopt;
      }
      site.products.push_back(use);
    }
    const bool one = gathers ? !site.products.empty() && site.products.front() > site.wait
                             : site.products.size() == 1 && site.products.front() < post;
    if (!one || at(site.allocate).on != at(post).on) return std::nullopt;
    if (!gathers && !mayMove(site.products.front(), post)) return std::nullopt;
    return site;
  }

  // The product may as well stand where the collective is posted, and its parts among the parts of
  // that: nothing between them touches what it reads or gives its slots another meaning, and the
  // collective writes nothing that it reads.
  bool mayMove(size_t product, size_t post) const {
    const auto& call = std::get<CallLibrary>(at(product).op);
    for (size_t i = product + 1; i < post; ++i) {
      if (conflict(items_.items[product], items_.items[i])) return false;
      bool redefines = false;
      forEachInstructionIn(&at(i), &at(i) + 1, [&](const Instruction& x, InstructionIndex) {
        forEachSlot(x.op, [&](SlotId id, bool defines) {
          const bool named =
              std::find(call.inputs.begin(), call.inputs.end(), id) != call.inputs.end();
          redefines = redefines || (defines && named);
        });
      });
      if (redefines) return false;
    }
    const auto& touched = items_.items[product].accesses;
    return std::none_of(items_.items[post].accesses.begin(), items_.items[post].accesses.end(),
                        [&](const ItemAccess& access) {
                          return access.write && (touched.count({access.root, false}) > 0 ||
                                                  touched.count({access.root, true}) > 0);
                        });
  }

  bool isRowMajor(SlotId id) const {
    const TensorView& tensor = slot(id).tensor;
    const Layout& layout = tensor.layout;
    return tensor.rank() >= 2 && tensor.allocationOrder() == rowMajor(tensor.rank()) &&
           (!layout.observed || layout.observed->order == rowMajor(tensor.rank()));
  }

  // The gathered or scattered axis is axis 0: it alone is spread differently on the two sides.
  bool movesRows(const Communicate& x) const {
    const Slot& in = slot(x.in);
    const Slot& out = slot(x.out);
    return devicesOf(program_, in, 0) != devicesOf(program_, out, 0);
  }

  std::optional<size_t> waitOf(size_t post, TokenId token) const {
    std::optional<size_t> found;
    for (size_t i = 0; i < program_.body.size(); ++i) {
      const auto* wait = std::get_if<Wait>(&at(i).op);
      const auto* other = std::get_if<Communicate>(&at(i).op);
      if (other != nullptr && other->token == token && i != post) return std::nullopt;
      if (wait == nullptr || wait->token != token) continue;
      if (found || i < post) return std::nullopt;
      found = i;
    }
    return found;
  }

  // Allocated once, at the top, and named by nothing in a body nor outside of the program.
  bool isOwn(SlotId id, ChunkSite& site) const {
    const Uses& of = uses(id);
    if (of.nested || of.defined.size() != 1) return false;
    site.allocate = of.defined.front();
    return std::holds_alternative<Allocate>(at(site.allocate).op);
  }

  // A product with the rows of its result those of its first operand: a matrix as the second.
  bool isProduct(size_t i, SlotId between, bool reads) const {
    const auto* call = std::get_if<CallLibrary>(&at(i).op);
    if (call == nullptr || (call->function != "matmul" && call->function != "linear")) return false;
    const SlotId rows = call->inputs[0];
    const SlotId result = call->outputs[0];
    if (slot(call->inputs[1]).tensor.rank() != 2 || slot(rows).tensor.rank() < 2) return false;
    if (std::count(call->inputs.begin(), call->inputs.end(), between) != (reads ? 1 : 0)) {
      return false;
    }
    // The result is made here, whole, and the rows are those of now.
    const bool whole = uses(result).defined.size() == 1 && uses(rows).defined.size() <= 1;
    return whole && (reads ? rows : result) == between && isRowMajor(result);
  }

  const Program& program_;
  const Items& items_;
  const std::vector<Uses> uses_;
  std::vector<bool> taken_;
  std::vector<ChunkSite> sites_;
};

}  // namespace

std::vector<ChunkSite> findChunkSites(const Program& program) {
  const Items items = itemsOf(program);
  if (program.streams() > 1 || !isUnordered(program, items)) return {};
  return SiteFinder(program, items).run();
}

}  // namespace heddle::host
