#include "host/passes/chunk/chunk_collectives.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "host/passes/analysis/nominal_sizes.h"
#include "host/passes/chunk/chunk_writer.h"
#include "host/passes/chunk/cost_model.h"
#include "host/passes/chunk/remainders.h"
#include "host/passes/chunk/row_cuts.h"
#include "host/passes/chunk/work_estimate.h"
#include "host/text/text_names.h"
#include "ir/base/error.h"

namespace heddle::host {
namespace {

// Two stages in one chunk may take 6 % longer by the model: they were never slower where they were
// measured, need less memory, and what hides a collective is twice as long, so that it matters less
// how long that takes here.
constexpr double kChainGain = 1.06;
// Than nothing cut, or than fewer chunks.
constexpr double kCutGain = 0.99, kLongerGain = 0.995;

// What the text asks for, at a tensor of a site.
struct Wanted {
  SlotId at;
  Sharding::StreamSplit split;
};

// How a site is cut.
struct Choice {
  const ChunkCut* cut = nullptr;
  ChunkShares shares = {1};
  ChunkRests rests;
  bool is_chain = false;
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
    std::map<size_t, Choice> chains;        // by the post of the reduction
    std::map<size_t, size_t> gathered_for;  // by the post of the gather: of the reduction
    for (const ChunkSite& site : found.sites) {
      Choice chain = chainOf(site, found);
      if (chain.shares.size() < 2) continue;
      if (site.gather) gathered_for[*site.gather] = site.post;
      chains.emplace(site.post, std::move(chain));
    }
    std::vector<std::pair<const ChunkSite*, Choice>> choices;
    for (const ChunkSite& site : found.sites) {
      if (const auto reduction = gathered_for.find(site.post); reduction != gathered_for.end()) {
        whys_[site.post] = fmt::format("is cut with {}", postText(reduction->second));
        continue;
      }
      const auto chain = chains.find(site.post);
      choices.emplace_back(&site, chain != chains.end() ? std::move(chain->second) : choose(site));
    }
    keepWhatDivides(choices);
    ChunkRests rests;
    for (const auto& [site, choice] : choices) {
      rests.insert(choice.rests.begin(), choice.rests.end());
    }
    ChunkWriter writer(program_);
    for (const auto& [site, choice] : choices) {
      whys_[site->post] = told(*site, choice, rests);
      if (choice.shares.size() < 2) {
        if (site->gather && gathered_for.contains(*site->gather))
          whys_[*site->gather] = fmt::format("stays whole with {}", postText(site->post));
        continue;
      }
      if (!choice.is_chain) {
        writer.cut(*site, *choice.cut, choice.shares);
      } else {
        writer.cutChain(*site, gatherOf(*site, found), *choice.cut, choice.shares);
      }
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

  // All are cut or none, by the sizes of the run: at those that are known nobody stays whole for
  // others whose rows do not divide. What the text asks for it gets.
  void keepWhatDivides(std::vector<std::pair<const ChunkSite*, Choice>>& choices) {
    const auto divides = [&](const auto& each) { return dividesNominally(each.second.rests); };
    if (std::none_of(choices.begin(), choices.end(), [&](const auto& each) {
          return each.second.shares.size() > 1 && divides(each);
        })) {
      return;
    }
    for (auto& each : choices) {
      if (!divides(each) && !wantedFor(*each.first)) each.second = {};
    }
  }

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
      return {&cut, equalShares(chunks), std::move(*rests)};
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
      if (best.cut == nullptr || divides) best = {&cut, equalShares(chunks), std::move(*rests)};
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
        std::vector<ChunkShares> allowed = sharesFor(work);
        std::erase_if(allowed, [&](const ChunkShares& shares) {
          return !isOpen(site, cut, shares, must_divide);
        });
        const ChunkShares shares = cheapestShares(work, allowed);
        const double needed = chunkedSeconds(work, shares);
        if (shares.size() < 2 || (best.cut != nullptr && needed >= seconds)) continue;
        best = {&cut, shares, *chunkRests(program_, site, cut, unitsOf(shares))};
        seconds = needed;
      }
      if (best.cut != nullptr) break;
    }
    return best;
  }

  // --- both stages of a reduction, and the gather before them ------------------------------------

  static const ChunkSite* gatherOf(const ChunkSite& site, const ChunkSites& found) {
    for (const ChunkSite& other : found.sites) {
      if (site.gather && other.post == *site.gather) return &other;
    }
    return nullptr;
  }

  // One chunk where there is no front, the text asks for something, or the stages are as cheap by
  // themselves.
  Choice chainOf(const ChunkSite& site, const ChunkSites& found) {
    const ChunkSite* gather = gatherOf(site, found);
    if (!site.front || wantedFor(site) || (gather != nullptr && wantedFor(*gather))) return {};
    const bool is_auto = options_.chunks == PassOptions::kAutoChunks;
    if (!is_auto && options_.chunks < 2) return {};
    Choice best;
    double seconds = is_auto ? mostForChain(site, gather) : 0;
    for (const ChunkCut& cut : site.cuts) {
      if (!frontTakes(program_, site, cut)) continue;
      const ChunkedWork work = chainedWork(program_, sizes_, site, cut);
      for (const ChunkShares& shares :
           is_auto ? sharesFor(work) : std::vector<ChunkShares>(1, equalShares(options_.chunks))) {
        auto rests = chunkRests(program_, site, cut, unitsOf(shares), true);
        if (shares.size() < 2 || !rests || !dividesNominally(*rests)) continue;
        const double needed = chunkedSeconds(work, shares);
        const bool is_longer = best.cut != nullptr && shares.size() > best.shares.size();
        if (is_auto ? needed >= (is_longer ? kLongerGain : 1) * seconds : best.cut != nullptr)
          continue;
        best = {&cut, shares, std::move(*rests), true};
        seconds = needed;
      }
    }
    return best;
  }

  // A little more than the same with each collective next to its own product, and a little less
  // than nothing cut at all.
  double mostForChain(const ChunkSite& site, const ChunkSite* gather) const {
    ChunkedWork front = frontWork(program_, sizes_, site);
    if (gather != nullptr) front.flops = front.calls = 0;  // the gather's products
    double whole = productSeconds(front);
    double apart = whole;
    for (const ChunkSite* each : {&site, gather}) {
      if (each == nullptr) continue;
      const Choice choice = cheapest(*each);
      const ChunkCut& cut = choice.cut != nullptr ? *choice.cut : each->cuts.front();
      const ChunkedWork work = chunkedWork(program_, sizes_, *each, cut);
      whole += chunkedSeconds(work, {1});
      apart += chunkedSeconds(work, choice.shares);
    }
    return std::min(kChainGain * apart, kCutGain * whole);
  }

  bool isOpen(const ChunkSite& site, const ChunkCut& cut, const ChunkShares& shares,
              bool must_divide) const {
    if (shares.size() == 1) return true;
    const auto rests = chunkRests(program_, site, cut, unitsOf(shares));
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

  // `rests`: of all that are cut.
  std::string told(const ChunkSite& site, const Choice& choice, const ChunkRests& rests) const {
    const auto micros = [&](const ChunkCut& cut, const ChunkShares& shares) {
      return 1e6 * chunkedSeconds(chunkedWork(program_, sizes_, site, cut), shares);
    };
    const char* unless =
        dividesNominally(rests) ? "" : "; at these sizes nothing is, as not all rows divide";
    if (choice.is_chain) {
      const ChunkedWork work = chainedWork(program_, sizes_, site, *choice.cut);
      return fmt::format("is cut with its product and {} before that in {} of {}: {:.0f} us{}",
                         site.front->products.size(), counted(choice.shares), named(*choice.cut),
                         1e6 * chunkedSeconds(work, choice.shares), unless);
    }
    if (choice.shares.size() > 1) {
      return fmt::format("is cut with {} product{} in {} of {}: {:.0f} us, whole {:.0f} us{}",
                         site.products.size(), site.products.size() == 1 ? "" : "s",
                         counted(choice.shares), named(*choice.cut),
                         micros(*choice.cut, choice.shares), micros(*choice.cut, {1}), unless);
    }
    if (options_.chunks == 1) return "stays whole: one chunk is asked for";
    std::vector<std::string> others;
    for (const ChunkCut& cut : site.cuts) {
      ChunkShares best = {1};
      for (const ChunkShares& shares : sharesFor(chunkedWork(program_, sizes_, site, cut))) {
        const bool first = best.size() == 1 || micros(cut, shares) < micros(cut, best);
        if (shares.size() > 1 && first && isOpen(site, cut, shares, false)) best = shares;
      }
      if (best.size() == 1) continue;
      others.push_back(
          fmt::format("{} of {} {:.0f} us", counted(best), named(cut), micros(cut, best)));
    }
    if (others.empty()) return "stays whole: its rows never divide on every rank";
    return fmt::format("stays whole: {:.0f} us, {}", micros(site.cuts.front(), {1}),
                       fmt::join(others, ", "));
  }

  static std::string counted(const ChunkShares& shares) {
    const std::string chunks = fmt::format("{} chunks", shares.size());
    if (unitsOf(shares) == static_cast<int64_t>(shares.size())) return chunks;
    return fmt::format("{} ({} of {})", chunks, fmt::join(shares, ", "), unitsOf(shares));
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
