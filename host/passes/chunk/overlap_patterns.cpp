#include "host/passes/chunk/overlap_patterns.h"

#include <algorithm>

#include "host/passes/analysis/buffer_accesses.h"
#include "host/passes/analysis/slot_uses.h"
#include "host/passes/chunk/row_cuts.h"
#include "host/passes/chunk/rowwise_kernel.h"
#include "host/program/visit.h"
#include "ir/base/error.h"

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
      ChunkSite site;
      site.kind = x->kind;
      site.post = i;
      site.team = teamSize(x->team);
      std::string why = lacks(site, *x);
      if (!why.empty()) {
        found_.whole.push_back({i, std::move(why)});
        continue;
      }
      for (size_t i : membersOf(site)) taken_[i] = true;
      findFront(site);
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
    std::string why = gathers ? findReaders(site, between, true) : findMakers(site, between);
    if (!why.empty()) return why;
    for (size_t i : membersOf(site)) {
      if (at(i).on != at(site.post).on || taken_[i])
        return "its product is another's, or elsewhere";
    }
    if (!isInOrder(site)) return "what its product reads changes before it is posted";
    site.order = slot(between).tensor.allocationOrder();
    site.cuts = cutsOf(program_, uses_, site);
    return site.cuts.empty() ? "its product has no rows outermost in memory" : "";
  }

  // The products that read `read`, which is gathered or, in the second turn, what a kernel makes of
  // that.
  std::string findReaders(ChunkSite& site, SlotId read, bool may_have_kernel) const {
    if (!isOwn(read, site)) return notOwn(read);
    for (size_t use : uses(read).at) {
      if (use == site.post || use == site.allocates.back() || use == site.kernel) continue;
      if (isProduct(use, read, true)) {
        site.products.push_back(use);
        continue;
      }
      const auto* launch = std::get_if<LaunchKernel>(&at(use).op);
      if (launch == nullptr || !may_have_kernel || !site.products.empty() || readersOf(read) > 1 ||
          !anyProductReads(launch->outputs)) {
        return fmt::format("%{} is read by other than products with a matrix", slot(read).name);
      }
      std::string why = takeKernel(site, use, read);
      return why.empty() ? findReaders(site, launch->outputs[0], false) : why;
    }
    return site.products.empty() ? fmt::format("no product reads %{}", slot(read).name) : "";
  }

  size_t readersOf(SlotId id) const { return uses(id).at.size() - 2; }  // also allocated, and made

  bool anyProductReads(const std::vector<SlotId>& of) const {
    return std::any_of(of.begin(), of.end(), [&](SlotId id) {
      const std::vector<size_t>& at = uses(id).at;
      return std::any_of(at.begin(), at.end(), [&](size_t i) { return isProduct(i, id, true); });
    });
  }

  bool anyProductMakes(const std::vector<SlotId>& of) const {
    return std::any_of(of.begin(), of.end(), [&](SlotId id) {
      const std::vector<size_t>& at = uses(id).at;
      return std::any_of(at.begin(), at.end(), [&](size_t i) { return isProduct(i, id, false); });
    });
  }

  // The product that makes `made`, or those that make what a kernel makes it of.
  std::string findMakers(ChunkStage& site, SlotId made) const {
    if (!isOwn(made, site)) return notOwn(made);
    if (uses(made).at.size() != 3) return fmt::format("%{} has other uses", slot(made).name);
    const size_t maker = uses(made).at[1];
    if (isProduct(maker, made, false)) {
      site.products.push_back(maker);
      return {};
    }
    const auto* launch = std::get_if<LaunchKernel>(&at(maker).op);
    if (launch == nullptr || !anyProductMakes(launch->inputs)) {
      return fmt::format("no product makes %{}", slot(made).name);
    }
    std::string why = takeKernel(site, maker, made);
    if (!why.empty()) return why;
    for (size_t i = 0; i < launch->inputs.size(); ++i) {
      const SlotId part = launch->inputs[i];
      if (!site.kernel_rows[i] || uses(part).at.size() != 3) continue;
      if (!isProduct(uses(part).at[1], part, false)) continue;
      if (!isOwn(part, site)) continue;  // whole, as others see it too
      site.products.push_back(uses(part).at[1]);
    }
    std::sort(site.products.begin(), site.products.end());
    return site.products.empty() ? fmt::format("no product makes %{}", slot(made).name) : "";
  }

  std::string takeKernel(ChunkStage& site, size_t position, SlotId between) const {
    const auto& launch = std::get<LaunchKernel>(at(position).op);
    const Kernel& kernel = program_.kernels[static_cast<size_t>(launch.kernel)];
    RowKernel rows = rowKernelOf(kernel.segment, slot(between).tensor.rank());
    const std::vector<SlotId>& in = launch.inputs;
    for (SlotId id : in) {
      if (rows.why.empty() && std::count(in.begin(), in.end(), id) > 1) rows.why = "it reads twice";
    }
    if (!rows.why.empty()) {
      return fmt::format("kernel {} between its product and it: {}", kernel.name, rows.why);
    }
    site.kernel = position;
    site.kernel_rows = std::move(rows.has_rows);
    return {};
  }

  std::string notOwn(SlotId id) const {
    return fmt::format("%{} is not allocated for it alone", slot(id).name);
  }

  // All instructions but the collective that are written in parts.
  static std::vector<size_t> membersOf(const ChunkStage& site) {
    std::vector<size_t> members = site.products;
    if (site.kernel) members.push_back(*site.kernel);
    return members;
  }

  // What makes the operand is written at the post; the kernel of what is gathered at the first
  // product.
  bool isInOrder(const ChunkSite& site) const {
    if (site.kind == CollectiveKind::Allgather) {
      if (site.products.front() < site.wait) return false;
      if (!site.kernel) return true;
      // Its later parts stand behind the product's first ones.
      return *site.kernel > site.wait && *site.kernel < site.products.front() &&
             mayMove(*site.kernel, site.products.front(), {}) &&
             isApart(*site.kernel, site.products.front());
    }
    const std::vector<size_t> members = membersOf(site);
    return std::all_of(members.begin(), members.end(), [&](size_t i) {
      return i < site.post && (!site.kernel || i <= *site.kernel) &&
             mayMove(i, site.post, members) && isApart(i, site.post);
    });
  }

  // --- two stages -------------------------------------------------------------------------------

  // All of a front moves to the post, past what the site moves too.
  void findFront(ChunkSite& site) const {
    if (site.kind == CollectiveKind::Allgather || site.products.size() != 1) return;
    ChunkStage front;
    const std::vector<SlotId>& read = call(site.products.front()).inputs;
    const SlotId rows = read[0];
    if (std::count(read.begin(), read.end(), rows) != 1 || uses(rows).defined.size() != 1 ||
        !findMakers(front, rows).empty()) {
      return;
    }
    std::vector<size_t> members = membersOf(site);
    const std::vector<size_t> before = membersOf(front);
    members.insert(members.end(), before.begin(), before.end());
    const bool moves = std::all_of(before.begin(), before.end(), [&](size_t i) {
      return at(i).on == at(site.post).on && i < site.products.front() &&
             (!front.kernel || i <= *front.kernel) && mayMove(i, site.post, members) &&
             isApart(i, site.post);
    });
    if (!moves) return;
    site.gather = gatherOf(site, front);
    const bool is_taken =
        std::any_of(before.begin(), before.end(), [&](size_t i) { return taken_[i]; });
    if (!is_taken || site.gather) site.front = std::move(front);
  }

  // The gather of what all products of the front read, and they alone, whose chunks hold the same
  // rows as those of the site.
  std::optional<size_t> gatherOf(const ChunkSite& site, const ChunkStage& front) const {
    for (const ChunkSite& other : found_.sites) {
      if (other.kind != CollectiveKind::Allgather || other.products != front.products) continue;
      const auto& from = std::get<Communicate>(at(other.post).op);
      const auto& to = std::get<Communicate>(at(site.post).op);
      const bool alike = site.kind == CollectiveKind::ReduceScatter && !other.kernel &&
                         from.team == to.team && other.order == site.order &&
                         movedAxis(program_, from) == movedAxis(program_, to) &&
                         at(other.post).on == at(site.post).on;
      if (alike) return other.post;
    }
    return std::nullopt;
  }

  // --- what stands around -----------------------------------------------------------------------

  // The instruction may as well stand later, and its parts among others: nothing between but
  // `members`, which move too, touches what it writes, changes what it reads or gives its slots
  // another meaning.
  bool mayMove(size_t from, size_t to, const std::vector<size_t>& members) const {
    std::vector<SlotId> read;
    forEachSlot(at(from).op, [&](SlotId id, bool) { read.push_back(id); });
    for (size_t i = from + 1; i < to; ++i) {
      if (std::find(members.begin(), members.end(), i) != members.end()) continue;
      if (items_.conflict(items_.items[from], items_.items[i])) return false;
      bool redefines = false;
      forEachInstructionIn(&at(i), &at(i) + 1, [&](const Instruction& x, InstructionIndex) {
        forEachSlot(x.op, [&](SlotId id, bool defines) {
          const bool named = std::find(read.begin(), read.end(), id) != read.end();
          redefines = redefines || (defines && named);
        });
      });
      if (redefines) return false;
    }
    return true;
  }

  // The later one writes nothing that the instruction touches.
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
  bool isOwn(SlotId id, ChunkStage& site) const {
    const SlotUses& of = uses(id);
    if (of.nested || of.defined.size() != 1 ||
        !std::holds_alternative<Allocate>(at(of.defined.front()).op) ||
        at(of.defined.front()).on != at(of.at.back()).on) {
      return false;
    }
    site.allocates.push_back(of.defined.front());
    return true;
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
