#include "host/passes/chunk_collectives.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "host/passes/chunk_cost.h"
#include "host/passes/chunk_rests.h"
#include "host/passes/chunk_work.h"
#include "host/passes/chunk_writer.h"
#include "host/passes/nominal_sizes.h"
#include "host/text_names.h"
#include "ir/error.h"

namespace heddle::host {
namespace {

const std::vector<int64_t> kAutoCounts = {1, 2, 4, 8};

// What the text asks for, at a tensor of a site.
struct Wanted {
  SlotId at;
  Sharding::StreamSplit split;
};

// How a site is cut.
struct Choice {
  const ChunkCut* cut = nullptr;
  int64_t chunks = 1;
  ChunkRests rests;
};

class Chunker {
 public:
  Chunker(const Program& program, const PassOptions& options)
      : program_(program), options_(options), sizes_(program, options) {}

  std::optional<Chunked> run() {
    const ChunkSites found = findChunkSites(program_);
    for (const WholeCollective& whole : found.whole) {
      whys_[whole.post] = fmt::format("stays whole: {}", whole.why);
    }
    ChunkWriter writer(program_);
    ChunkRests rests;
    for (const ChunkSite& site : found.sites) {
      const Choice choice = choose(site);
      whys_[site.post] = told(site, choice);
      if (choice.chunks < 2) continue;
      rests.insert(choice.rests.begin(), choice.rests.end());
      writer.cut(site, *choice.cut, choice.chunks);
    }
    checkServed(found);
    if (!writer.hasCut()) return std::nullopt;
    Size rest(0);
    for (const auto& [text, size] : rests) rest = rest + size;
    return Chunked{std::move(writer).result(), rest};
  }

  // Of the latest run.
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const auto& [at, why] : whys_) lines.push_back(postText(at) + " " + why);
    return lines;
  }

 private:
  const Slot& slot(SlotId id) const { return program_.slots[static_cast<size_t>(id)]; }
  const Communicate& post(size_t at) const { return std::get<Communicate>(program_.body[at].op); }

  // --- how many, and of what --------------------------------------------------------------------

  Choice choose(const ChunkSite& site) {
    if (const auto wanted = wantedFor(site)) return asked(site, *wanted);
    if (options_.chunks != PassOptions::kAutoChunks) return fixed(site, options_.chunks);
    return cheapest(site);
  }

  Choice asked(const ChunkSite& site, const Wanted& wanted) const {
    const std::string& name = slot(wanted.at).name;
    const auto [axis, chunks] = wanted.split;
    for (const ChunkCut& cut : site.cuts) {
      if (cut.isFlat() || cut.axes.front() != static_cast<size_t>(axis)) continue;
      if (chunks < 2) return {};
      auto rests = chunkRests(program_, site, cut, chunks);
      HEDDLE_USER_CHECK(rests,
                        "%{} at line {}: its rows do not divide into {} chunks on every rank", name,
                        program_.body[site.post].line, chunks);
      return {&cut, chunks, std::move(*rests)};
    }
    std::vector<std::string> able;
    for (const ChunkCut& cut : site.cuts) {
      if (!cut.isFlat()) able.push_back(std::to_string(cut.axes.front()));
    }
    userError(
        "%{}: stream({}: {}): the {} of line {} and its product are cut along axis {}, where a "
        "chunk "
        "of rows is one stretch of memory",
        name, axis, chunks, collectiveName(site.kind), program_.body[site.post].line,
        fmt::join(able, " or axis "));
  }

  // What divides at the sizes that are known goes before what may divide at others.
  Choice fixed(const ChunkSite& site, int64_t chunks) const {
    Choice best;
    if (chunks < 2) return best;
    for (const ChunkCut& cut : site.cuts) {
      auto rests = chunkRests(program_, site, cut, chunks);
      if (!rests) continue;
      const bool divides = dividesNominally(*rests);
      if (best.cut == nullptr || divides) best = {&cut, chunks, std::move(*rests)};
      if (divides) break;
    }
    return best;
  }

  Choice cheapest(const ChunkSite& site) const {
    Choice best;
    double seconds = 0;
    for (const bool must_divide : {true, false}) {
      for (const ChunkCut& cut : site.cuts) {
        const ChunkedWork work = chunkedWork(program_, sizes_, site, cut);
        std::vector<int64_t> allowed;
        std::copy_if(kAutoCounts.begin(), kAutoCounts.end(), std::back_inserter(allowed),
                     [&](int64_t chunks) { return isOpen(site, cut, chunks, must_divide); });
        const int64_t chunks = cheapestChunks(work, allowed);
        const double needed = chunkedSeconds(work, chunks);
        if (chunks < 2 || (best.cut != nullptr && needed >= seconds)) continue;
        best = {&cut, chunks, *chunkRests(program_, site, cut, chunks)};
        seconds = needed;
      }
      if (best.cut != nullptr) break;
    }
    return best;
  }

  bool isOpen(const ChunkSite& site, const ChunkCut& cut, int64_t chunks, bool must_divide) const {
    if (chunks == 1) return true;
    const auto rests = chunkRests(program_, site, cut, chunks);
    return rests && (!must_divide || dividesNominally(*rests));
  }

  bool dividesNominally(const ChunkRests& rests) const {
    return std::all_of(rests.begin(), rests.end(),
                       [&](const auto& rest) { return sizes_.value(rest.second) == 0; });
  }

  // --- what the text asks for -------------------------------------------------------------------

  // Of the tensors around a site.
  std::optional<Wanted> wantedFor(const ChunkSite& site) {
    std::vector<SlotId> around = {post(site.post).in, post(site.post).out};
    for (size_t product : site.products) {
      around.push_back(std::get<CallLibrary>(program_.body[product].op).outputs[0]);
    }
    std::optional<Wanted> wanted;
    for (SlotId id : around) {
      const std::optional<Sharding>& sharding = slot(id).tensor.sharding;
      if (!sharding || !sharding->stream) continue;
      const Sharding::StreamSplit& split = *sharding->stream;
      HEDDLE_USER_CHECK(!wanted || wanted->split == split,
                        "%{}: stream({}: {}) beside stream({}: {}) of the same collective",
                        slot(id).name, split.axis, split.chunks, wanted->split.axis,
                        wanted->split.chunks);
      HEDDLE_USER_CHECK(split.chunks <= PassOptions::kMostChunks,
                        "%{}: stream({}: {}) asks for more than {} chunks", slot(id).name,
                        split.axis, split.chunks, PassOptions::kMostChunks);
      wanted = Wanted{id, split};
      served_.insert(id);
    }
    return wanted;
  }

  // The text asks for chunks of what nothing here can cut.
  void checkServed(const ChunkSites& found) const {
    for (size_t i = 0; i < program_.slots.size(); ++i) {
      const auto id = static_cast<SlotId>(i);
      const std::optional<Sharding>& sharding = slot(id).tensor.sharding;
      if (!sharding || !sharding->stream || served_.count(id) > 0) continue;
      const DeviceMesh& mesh = program_.meshes[static_cast<size_t>(sharding->mesh)];
      HEDDLE_USER_CHECK(mesh.size() == 1,
                        "%{}: stream({}: {}): no product next to a collective makes or reads it, "
                        "so there is nothing to overlap{}",
                        slot(id).name, sharding->stream->axis, sharding->stream->chunks,
                        whyWhole(found, id));
    }
  }

  std::string whyWhole(const ChunkSites& found, SlotId id) const {
    for (const WholeCollective& whole : found.whole) {
      const Communicate& x = post(whole.post);
      if (x.in == id || x.out == id)
        return fmt::format(" ({}: {})", postText(whole.post), whole.why);
    }
    return {};
  }

  // --- what is said of it -----------------------------------------------------------------------

  std::string postText(size_t at) const {
    const Communicate& x = post(at);
    return fmt::format("{} %{} -> %{}", collectiveName(x.kind), slot(x.in).name, slot(x.out).name);
  }

  std::string told(const ChunkSite& site, const Choice& choice) const {
    const auto micros = [&](const ChunkCut& cut, int64_t chunks) {
      return 1e6 * chunkedSeconds(chunkedWork(program_, sizes_, site, cut), chunks);
    };
    if (choice.chunks > 1) {
      return fmt::format("is cut with {} product{} in {} chunks of {}: {:.0f} us, whole {:.0f} us",
                         site.products.size(), site.products.size() == 1 ? "" : "s", choice.chunks,
                         named(*choice.cut), micros(*choice.cut, choice.chunks),
                         micros(*choice.cut, 1));
    }
    if (options_.chunks == 1) return "stays whole: one chunk is asked for";
    std::vector<std::string> others;
    for (const ChunkCut& cut : site.cuts) {
      int64_t best = 1;
      for (int64_t chunks : kAutoCounts) {
        const bool first = best == 1 || micros(cut, chunks) < micros(cut, best);
        if (chunks > 1 && first && isOpen(site, cut, chunks, false)) best = chunks;
      }
      if (best == 1) continue;
      others.push_back(
          fmt::format("{} chunks of {} {:.0f} us", best, named(cut), micros(cut, best)));
    }
    if (others.empty()) return "stays whole: its rows never divide on every rank";
    return fmt::format("stays whole: {:.0f} us, {}", micros(site.cuts.front(), 1),
                       fmt::join(others, ", "));
  }

  static std::string named(const ChunkCut& cut) {
    if (!cut.isFlat()) return fmt::format("axis {}", cut.axes.front());
    return fmt::format("axes {}", fmt::join(cut.axes, ", "));
  }

  const Program& program_;
  const PassOptions& options_;
  const NominalSizes sizes_;
  std::set<SlotId> served_;             // with a stream split that was heard
  std::map<size_t, std::string> whys_;  // by position of the post
};

}  // namespace

std::optional<Chunked> chunkCollectives(const Program& program, const PassOptions& options) {
  if (!options.overlap) return std::nullopt;
  return Chunker(program, options).run();
}

std::vector<std::string> explainChunks(const Program& program, const PassOptions& options) {
  if (!options.overlap) return {};
  Chunker chunker(program, options);
  chunker.run();
  return chunker.lines();
}

}  // namespace heddle::host
