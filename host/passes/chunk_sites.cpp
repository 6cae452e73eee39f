#include "host/passes/chunk_sites.h"

#include <algorithm>

#include "host/passes/items.h"
#include "host/passes/nominal_sizes.h"
#include "host/passes/slot_uses.h"
#include "host/visit.h"
#include "ir/error.h"

namespace heddle::host {
namespace {

using comm::CollectiveKind;

class SiteFinder {
 public:
  SiteFinder(const Program& program, const Items& items)
      : program_(program),
        items_(items),
        uses_(slotUsesOf(program)),
        taken_(program.body.size(), false) {}

  ChunkSites run() {
    for (size_t i = 0; i < program_.body.size(); ++i) {
      const auto* x = std::get_if<Communicate>(&at(i).op);
      if (x == nullptr || !isCandidate(*x)) continue;
      ChunkSite site{x->kind, 0, i, 0, {}, teamSize(x->team), {}, {}};
      std::string why = lacks(site, *x);
      if (!why.empty()) {
        found_.whole.push_back({i, std::move(why)});
        continue;
      }
      for (size_t product : site.products) taken_[product] = true;
      found_.sites.push_back(std::move(site));
    }
    return std::move(found_);
  }

 private:
  const Slot& slot(SlotId id) const { return program_.slots[static_cast<size_t>(id)]; }
  const SlotUses& uses(SlotId id) const { return uses_[static_cast<size_t>(id)]; }
  const Instruction& at(size_t i) const { return program_.body[i]; }
  const CallLibrary& call(size_t i) const { return std::get<CallLibrary>(at(i).op); }

  int64_t teamSize(const Team& team) const {
    const DeviceMesh& mesh = program_.meshes[static_cast<size_t>(team.mesh)];
    int64_t devices = 1;
    for (MeshAxis axis : team.axes) devices *= mesh.size(axis);
    return devices;
  }

  bool isCandidate(const Communicate& x) const {
    const bool known = x.kind == CollectiveKind::Allgather ||
                       x.kind == CollectiveKind::ReduceScatter ||
                       x.kind == CollectiveKind::Allreduce;
    return known && x.team.mesh >= 0 &&
           !program_.meshes[static_cast<size_t>(x.team.mesh)].sizeIsFromJob() &&
           teamSize(x.team) > 1;
  }

  // Fills in the site; returns what keeps it from being one, else nothing.
  std::string lacks(ChunkSite& site, const Communicate& x) const {
    const bool gathers = x.kind == CollectiveKind::Allgather;
    const SlotId between = gathers ? x.out : x.in;
    if (!x.also.empty()) return "it is one of a group";
    const std::optional<size_t> wait = waitOf(site.post, x.token);
    if (!wait) return "its wait is no single one in the same body";
    site.wait = *wait;
    if (!isOwn(between, site) || at(site.allocate).on != at(site.post).on) {
      return fmt::format("%{} is not allocated for it alone", slot(between).name);
    }
    for (size_t use : uses(between).at) {
      if (use == site.allocate || use == site.post) continue;
      if (!isProduct(use, between, gathers) || at(use).on != at(site.post).on || taken_[use]) {
        return fmt::format("%{} is {} by other than products with a matrix", slot(between).name,
                           gathers ? "read" : "made or read");
      }
      site.products.push_back(use);
    }
    if (site.products.empty()) return fmt::format("no product reads %{}", slot(between).name);
    if (!gathers && site.products.size() != 1) return "several products make its operand";
    const bool in_order =
        gathers ? site.products.front() > site.wait
                : site.products.front() < site.post && mayMove(site.products.front(), site.post);
    if (!in_order) return "what its product reads changes before it is posted";
    site.order = slot(between).tensor.allocationOrder();
    findCuts(site, x);
    return site.cuts.empty() ? "its product has no rows outermost in memory" : "";
  }

  // --- which rows -------------------------------------------------------------------------------

  void findCuts(ChunkSite& site, const Communicate& x) const {
    const size_t last = site.order.size() - 1;
    const bool moves = x.kind != CollectiveKind::Allreduce;
    const std::optional<size_t> moved = moves ? movedAxis(x) : std::nullopt;
    if (moves && (!moved || *moved == last)) return;
    std::vector<size_t> ones;
    std::vector<ChunkCut> single;
    for (int64_t each : site.order) {
      const auto axis = static_cast<size_t>(each);
      if (axis == last) break;
      if (!moves || axis == *moved) single.push_back({{axis}, ones});
      const Size& extent = slot(x.in).tensor.domain[axis].extent;
      if (extent.isConstant(1)) continue;
      if (extent.isConstant()) break;
      ones.push_back(axis);
    }
    if (auto flat = flatCut(site, x, moved)) site.cuts.push_back(std::move(*flat));
    site.cuts.insert(site.cuts.end(), single.begin(), single.end());
  }

  // All rows as one axis: there they lie behind each other in every tensor around.
  std::optional<ChunkCut> flatCut(const ChunkSite& site, const Communicate& x,
                                  std::optional<size_t> moved) const {
    if (site.order.size() < 3 || site.order.back() + 1 != static_cast<int64_t>(site.order.size())) {
      return std::nullopt;
    }
    ChunkCut cut;
    for (size_t i = 0; i + 1 < site.order.size(); ++i) {
      cut.axes.push_back(static_cast<size_t>(site.order[i]));
    }
    const auto is_one = [&](size_t axis) {
      return slot(x.in).tensor.domain[axis].extent.isConstant(1);
    };
    const auto first = std::find_if_not(cut.axes.begin(), cut.axes.end(), is_one);
    if (first == cut.axes.end() || (moved && *first != *moved)) return std::nullopt;
    for (size_t product : site.products) {
      const bool gathers = site.kind == CollectiveKind::Allgather;
      const SlotId far = gathers ? call(product).outputs[0] : call(product).inputs[0];
      if (denseOrderOf(program_, uses_, far) != site.order) return std::nullopt;
    }
    return cut;
  }

  // The one that is spread differently on the two sides.
  std::optional<size_t> movedAxis(const Communicate& x) const {
    std::optional<size_t> moved;
    if (slot(x.in).tensor.rank() != slot(x.out).tensor.rank()) return std::nullopt;
    for (size_t axis = 0; axis < slot(x.in).tensor.rank(); ++axis) {
      if (devicesOf(program_, slot(x.in), axis) == devicesOf(program_, slot(x.out), axis)) continue;
      if (moved) return std::nullopt;
      moved = axis;
    }
    return moved;
  }

  // --- what stands around -----------------------------------------------------------------------

  // The product may as well stand where the collective is posted, and its parts among the parts of
  // that: nothing between them touches what it reads or gives its slots another meaning, and the
  // collective writes nothing that it reads.
  bool mayMove(size_t product, size_t post) const {
    const std::vector<SlotId>& read = call(product).inputs;
    for (size_t i = product + 1; i < post; ++i) {
      if (conflict(items_.items[product], items_.items[i])) return false;
      bool redefines = false;
      forEachInstructionIn(&at(i), &at(i) + 1, [&](const Instruction& x, InstructionIndex) {
        forEachSlot(x.op, [&](SlotId id, bool defines) {
          const bool named = std::find(read.begin(), read.end(), id) != read.end();
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
    const SlotUses& of = uses(id);
    if (of.nested || of.defined.size() != 1) return false;
    site.allocate = of.defined.front();
    return std::holds_alternative<Allocate>(at(site.allocate).op);
  }

  // A product with the rows of its result those of its first operand: a matrix as the second.
  bool isProduct(size_t i, SlotId between, bool reads) const {
    const auto* product = std::get_if<CallLibrary>(&at(i).op);
    if (product == nullptr || (product->function != "matmul" && product->function != "linear")) {
      return false;
    }
    const std::vector<SlotId>& inputs = product->inputs;
    const SlotId rows = inputs[0];
    const SlotId result = product->outputs[0];
    const size_t rank = slot(rows).tensor.rank();
    if (slot(inputs[1]).tensor.rank() != 2 || rank < 2 || slot(result).tensor.rank() != rank ||
        std::count(inputs.begin(), inputs.end(), between) != (reads ? 1 : 0)) {
      return false;
    }
    // The result is made here, whole, and the rows are those of now.
    return uses(result).defined.size() == 1 && uses(rows).defined.size() <= 1 &&
           (reads ? rows : result) == between;
  }

  const Program& program_;
  const Items& items_;
  const std::vector<SlotUses> uses_;
  std::vector<bool> taken_;
  ChunkSites found_;
};

}  // namespace

ChunkSites findChunkSites(const Program& program) {
  const Items items = itemsOf(program);
  if (program.streams() > 1 || !isUnordered(program, items)) return {};
  return SiteFinder(program, items).run();
}

}  // namespace heddle::host
