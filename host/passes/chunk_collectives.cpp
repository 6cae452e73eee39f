#include "host/passes/chunk_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "host/passes/chunk_cost.h"
#include "host/passes/chunk_sites.h"
#include "host/passes/nominal_sizes.h"
#include "ir/error.h"

namespace heddle::host {
namespace {

using comm::CollectiveKind;

const std::vector<int64_t> kAutoCounts = {1, 2, 4, 8};

class Chunker {
 public:
  Chunker(const Program& program, const PassOptions& options)
      : old_(program), options_(options), new_(program), sizes_(program, options) {
    for (const Slot& slot : program.slots) names_.insert(slot.name);
    names_.insert(program.tokens.begin(), program.tokens.end());
  }

  std::optional<Chunked> run() {
    instead_.resize(old_.body.size());
    for (const ChunkSite& site : findChunkSites(old_)) {
      const std::optional<int64_t> wanted = wantedFor(site);
      const int64_t chunks = wanted ? *wanted : countFor(site);
      if (chunks < 2) continue;
      std::optional<Rests> rests = restsOf(site, chunks);
      HEDDLE_USER_CHECK(rests || !wanted,
                        "%{} at line {}: its rows do not divide into {} chunks on every rank",
                        slot(post(site).out).name, old_.body[site.post].line, chunks);
      if (!rests) continue;
      rests_.merge(*rests);
      cut(site, chunks);
    }
    checkServed();
    if (!cut_) return std::nullopt;
    std::vector<Instruction> body;
    for (size_t i = 0; i < old_.body.size(); ++i) {
      if (!instead_[i]) {
        body.push_back(old_.body[i]);
        continue;
      }
      for (Instruction& x : *instead_[i]) body.push_back(std::move(x));
    }
    new_.body = std::move(body);
    Size rest(0);
    for (const auto& [text, size] : rests_) rest = rest + size;
    return Chunked{std::move(new_), rest};
  }

 private:
  const Slot& slot(SlotId id) const { return new_.slots[static_cast<size_t>(id)]; }
  const CallLibrary& call(size_t at) const { return std::get<CallLibrary>(old_.body[at].op); }
  const Communicate& post(const ChunkSite& site) const {
    return std::get<Communicate>(old_.body[site.post].op);
  }

  // --- how many ---------------------------------------------------------------------------------

  // Of the tensors around a site, those for which the text asks for chunks.
  std::optional<int64_t> wantedFor(const ChunkSite& site) {
    std::vector<SlotId> around = {post(site).in, post(site).out};
    for (size_t product : site.products) around.push_back(call(product).outputs[0]);
    std::optional<int64_t> wanted;
    for (SlotId id : around) {
      const std::optional<Sharding>& sharding = slot(id).tensor.sharding;
      if (!sharding || !sharding->stream) continue;
      HEDDLE_USER_CHECK(sharding->stream->axis == 0,
                        "%{}: stream({}: {}): a product and a collective are cut along axis 0",
                        slot(id).name, sharding->stream->axis, sharding->stream->chunks);
      HEDDLE_USER_CHECK(!wanted || *wanted == sharding->stream->chunks,
                        "%{}: stream(0: {}) beside stream(0: {}) of the same collective",
                        slot(id).name, sharding->stream->chunks, *wanted);
      wanted = sharding->stream->chunks;
      HEDDLE_USER_CHECK(*wanted <= PassOptions::kMostChunks,
                        "%{}: stream(0: {}) asks for more than {} chunks", slot(id).name, *wanted,
                        PassOptions::kMostChunks);
      served_.insert(id);
    }
    return wanted;
  }

  // The text asks for chunks of what nothing here can cut.
  void checkServed() const {
    for (size_t i = 0; i < old_.slots.size(); ++i) {
      const std::optional<Sharding>& sharding = old_.slots[i].tensor.sharding;
      if (!sharding || !sharding->stream || served_.count(static_cast<SlotId>(i)) > 0) continue;
      const DeviceMesh& mesh = old_.meshes[static_cast<size_t>(sharding->mesh)];
      HEDDLE_USER_CHECK(mesh.size() == 1,
                        "%{}: stream({}: {}): no product next to a collective makes or reads it, "
                        "so there is nothing to overlap",
                        old_.slots[i].name, sharding->stream->axis, sharding->stream->chunks);
    }
  }

  int64_t countFor(const ChunkSite& site) const {
    if (options_.chunks != PassOptions::kAutoChunks) return options_.chunks;
    const Communicate& x = post(site);
    ChunkedWork work;
    const DType dtype = slot(x.in).tensor.dtype;
    const double whole =
        sizes_.elements(new_, slot(site.kind == CollectiveKind::Allgather ? x.out : x.in));
    const double share = 1 - 1 / static_cast<double>(site.team);
    work.bytes = whole * static_cast<double>(sizeOf(dtype)) * share *
                 (site.kind == CollectiveKind::Allreduce ? 2 : 1);
    work.half_rate = sizeOf(dtype) >= 4;
    work.calls = static_cast<int64_t>(site.products.size());
    work.ctas = chunkCtas(x.kind);
    for (size_t product : site.products) {
      const Slot& a = slot(call(product).inputs[0]);
      work.flops += 2 * sizes_.elements(new_, slot(call(product).outputs[0])) *
                    sizes_.value(evenExtent(new_, a, a.tensor.rank() - 1));
    }
    return cheapestChunks(work, kAutoCounts);
  }

  // --- what must be even ------------------------------------------------------------------------

  using Rests = std::map<std::string, Size>;  // by text: each once, in one order

  // All zero where every block and chunk of the site is even; nullopt where no run, or not every
  // rank alike, can have that.
  std::optional<Rests> restsOf(const ChunkSite& site, int64_t chunks) const {
    Rests rests;
    const bool gathers = site.kind == CollectiveKind::Allgather;
    const Communicate& x = post(site);
    addRests(rests, x.in, gathers ? chunks : 1);
    addRests(rests, x.out, gathers ? 1 : chunks);
    for (size_t product : site.products) {
      addRests(rests, call(product).inputs[0], 1);
      addRests(rests, call(product).outputs[0], 1);
    }
    for (const auto& [text, rest] : rests) {
      std::vector<std::string> symbols;
      rest.collectSymbols(symbols);
      const bool differs = std::any_of(symbols.begin(), symbols.end(), [](const auto& symbol) {
        return symbol == "rank" || symbol.ends_with(".index");
      });
      if (rest.isConstant() || differs) return std::nullopt;
    }
    return rests;
  }

  void addRests(Rests& rests, SlotId id, int64_t parts) const {
    const auto add = [&](const Size& rest) {
      if (!rest.isConstant(0)) rests.emplace(rest.str(), rest);
    };
    const Slot& of = slot(id);
    for (size_t axis = 0; axis < of.tensor.rank(); ++axis) {
      const int64_t blocks = devicesOf(new_, of, axis) * (axis == 0 ? parts : 1);
      if (blocks > 1) add(Size::mod(of.tensor.domain[axis].extent, Size(blocks)));
      if (!of.alloc.empty()) add(of.alloc[axis] - evenExtent(new_, of, axis));
    }
  }

  // --- new names --------------------------------------------------------------------------------

  std::string fresh(const std::string& base) {
    for (int i = 0;; ++i) {
      std::string name = fmt::format("{}_{}", base, i);
      if (names_.insert(name).second) return name;
    }
  }

  // A slot with these local sizes, dense and row-major.
  SlotId newSlot(SlotId like, const std::string& what, const std::vector<Size>& sizes) {
    Slot made;
    made.name = fresh(slot(like).name + what);
    made.tensor.dtype = slot(like).tensor.dtype;
    for (const Size& size : sizes) made.tensor.domain.push_back({size});
    new_.slots.push_back(std::move(made));
    return static_cast<SlotId>(new_.slots.size()) - 1;
  }

  TokenId newToken() {
    new_.tokens.push_back(fresh("chunk"));
    return static_cast<TokenId>(new_.tokens.size()) - 1;
  }

  std::vector<Size> localSizes(SlotId id) const {
    std::vector<Size> sizes;
    for (size_t i = 0; i < slot(id).tensor.rank(); ++i) {
      sizes.push_back(evenExtent(new_, slot(id), i));
    }
    return sizes;
  }

  // --- writing ----------------------------------------------------------------------------------

  // The instructions that stand for those at `i`, emptied on the first call.
  std::vector<Instruction>& instead(size_t i) {
    if (!instead_[i]) instead_[i].emplace();
    current_ = i;
    return *instead_[i];
  }

  void emit(Op op) {
    const Instruction& old = old_.body[current_];
    instead_[current_]->push_back({std::move(op), old.on, old.line});
  }

  // The rows of a tensor as chunks take them: [rows, ...], or [blocks, rows, ...] when each chunk
  // has rows of every block.
  struct Rows {
    SlotId slot;
    int64_t blocks;
    Size count;  // rows of one chunk in one block
  };

  Rows rowsOf(SlotId id, int64_t blocks, int64_t chunks) {
    std::vector<Size> sizes = localSizes(id);
    const Size rows = Size::floorDiv(sizes[0], Size(blocks));
    SlotId view = newSlot(id, "_rows", sizes);
    emit(Alias{view, id, Alias::Unpad{}});
    if (blocks > 1) {
      sizes[0] = rows;
      sizes.insert(sizes.begin(), Size(blocks));
      const SlotId regrouped = newSlot(id, "_blocks", sizes);
      emit(Alias{regrouped, view, Alias::Reshape{}});
      view = regrouped;
    }
    return {view, blocks, Size::floorDiv(rows, Size(chunks))};
  }

  SlotId chunkOf(const Rows& rows, SlotId of, int64_t chunk) {
    std::vector<Size> sizes = slot(rows.slot).tensor.sizes();
    const size_t axis = rows.blocks > 1 ? 1 : 0;
    Alias::Slice slice{std::vector<Size>(sizes.size(), Size(0)), sizes};
    slice.starts[axis] = rows.count * Size(chunk);
    slice.stops[axis] = rows.count * Size(chunk + 1);
    sizes[axis] = rows.count;
    const SlotId view = newSlot(of, "_chunk", sizes);
    emit(Alias{view, rows.slot, std::move(slice)});
    return view;
  }

  void cut(const ChunkSite& site, int64_t chunks) {
    cut_ = true;
    instead(site.allocate);
    instead(site.wait);
    if (site.kind == CollectiveKind::Allgather) return gatherChunks(site, chunks);
    reduceChunks(site, site.kind == CollectiveKind::ReduceScatter ? site.team : 1, chunks);
  }

  void gatherChunks(const ChunkSite& site, int64_t chunks) {
    const Communicate x = post(site);
    instead(site.post);
    const Rows rows = rowsOf(x.in, 1, chunks);
    std::vector<SlotId> gathered;
    std::vector<TokenId> tokens;
    std::vector<Size> sizes = localSizes(x.in);
    sizes[0] = rows.count;
    sizes.insert(sizes.begin(), Size(site.team));
    for (int64_t i = 0; i < chunks; ++i) {
      const SlotId part = chunkOf(rows, x.in, i);
      gathered.push_back(newSlot(x.out, "_chunk", sizes));
      tokens.push_back(newToken());
      emit(Allocate{gathered.back(), 0});
      Communicate chunk = x;
      chunk.ctas = chunkCtas(x.kind);
      chunk.in = part;
      chunk.out = gathered.back();
      chunk.token = tokens.back();
      emit(std::move(chunk));
    }
    for (TokenId token : tokens) emit(Wait{token, 0});
    for (size_t product : site.products) {
      const CallLibrary whole = call(product);
      instead(product);
      const Rows results = rowsOf(whole.outputs[0], site.team, chunks);
      for (int64_t i = 0; i < chunks; ++i) {
        CallLibrary part = whole;
        part.inputs[0] = gathered[static_cast<size_t>(i)];
        part.outputs[0] = chunkOf(results, whole.outputs[0], i);
        // The last part is gathered by then.
        if (i + 1 < chunks) part.spare_sms = chunkCtas(x.kind);
        emit(std::move(part));
      }
    }
  }

  void reduceChunks(const ChunkSite& site, int64_t blocks, int64_t chunks) {
    const Communicate x = post(site);
    const CallLibrary whole = call(site.products[0]);
    instead(site.products[0]);
    instead(site.post);
    const Rows rows = rowsOf(whole.inputs[0], blocks, chunks);
    const Rows results = rowsOf(x.out, 1, chunks);
    std::vector<Size> sizes = localSizes(x.in);
    sizes[0] = rows.count;
    if (blocks > 1) sizes.insert(sizes.begin(), Size(blocks));
    std::vector<TokenId> tokens;
    for (int64_t i = 0; i < chunks; ++i) {
      CallLibrary part = whole;
      part.inputs[0] = chunkOf(rows, whole.inputs[0], i);
      part.outputs[0] = newSlot(x.in, "_chunk", sizes);
      if (i > 0) part.spare_sms = chunkCtas(x.kind);  // of the part before
      Communicate chunk = x;
      chunk.ctas = chunkCtas(x.kind);
      chunk.in = part.outputs[0];
      chunk.out = chunkOf(results, x.out, i);
      chunk.token = newToken();
      tokens.push_back(chunk.token);
      emit(Allocate{chunk.in, 0});
      emit(std::move(part));
      emit(std::move(chunk));
    }
    for (TokenId token : tokens) emit(Wait{token, 0});
  }

  const Program& old_;
  const PassOptions& options_;
  Program new_;
  const NominalSizes sizes_;
  std::set<std::string> names_;
  Rests rests_;                                                   // of all sites
  std::vector<std::optional<std::vector<Instruction>>> instead_;  // by position
  size_t current_ = 0;
  std::set<SlotId> served_;  // with a stream split that was heard
  bool cut_ = false;
};

}  // namespace

std::optional<Chunked> chunkCollectives(const Program& program, const PassOptions& options) {
  if (!options.overlap) return std::nullopt;
  return Chunker(program, options).run();
}

}  // namespace heddle::host
