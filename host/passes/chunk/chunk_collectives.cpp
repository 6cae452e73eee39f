#include "host/passes/chunk/chunk_collectives.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "host/passes/analysis/nominal_sizes.h"
#include "host/passes/analysis/slot_uses.h"
#include "host/passes/chunk/chunk_writer.h"
#include "host/passes/chunk/cost_constants.h"
#include "host/passes/chunk/cost_model.h"
#include "host/passes/chunk/remainders.h"
#include "host/passes/chunk/row_cuts.h"
#include "host/passes/chunk/unserved_split.h"
#include "host/passes/chunk/work_estimate.h"
#include "host/text/text_names.h"
#include "ir/base/check.h"

namespace heddle::host {
namespace {

// The stream split that the program text requests for a tensor of a match (OverlapMatch).
struct Wanted {
  SlotId at;  // the tensor
  Sharding::StreamSplit split;
};

// The split that was chosen for a match.
struct Choice {
  const ChunkCut* cut = nullptr;  // the axes
  ChunkShares shares = {1};       // the lengths of the chunks; {1}: no split
  Remainders remainders;
  bool is_chain = false;  // true: the front (OverlapMatch::front) is split too
};

class Chunker {
 public:
  Chunker(const Program& program, const PassOptions& options)
      : program_(program),
        options_(options),
        sizes_(program, options),
        uses_(slotUsesOf(program)) {}

  // Chooses a split for every match, and writes the program. Two-stage splits split a match
  // together with its front (OverlapMatch::front). They are chosen first, because each of them also
  // determines the split of the gather before the front.
  std::optional<Chunked> run() {
    const OverlapMatches found = findOverlapPatterns(program_);
    for (const WholeCollective& whole : found.whole) {
      whys_[whole.post] = fmt::format("is not split: {}", whole.why);
    }
    std::map<size_t, Choice> chains;        // post of a reduction -> its two-stage split
    std::map<size_t, size_t> gathered_for;  // post of a gather -> post of the reduction
    for (const OverlapMatch& match : found.matches) {
      Choice chain = chainOf(match, found);
      if (chain.shares.size() < 2) continue;
      if (match.gather) gathered_for[*match.gather] = match.post;
      chains.emplace(match.post, std::move(chain));
    }
    std::vector<std::pair<const OverlapMatch*, Choice>> choices;
    for (const OverlapMatch& match : found.matches) {
      if (const auto reduction = gathered_for.find(match.post); reduction != gathered_for.end()) {
        whys_[match.post] = fmt::format("is split with {}", postText(reduction->second));
        continue;
      }
      const auto chain = chains.find(match.post);
      choices.emplace_back(&match,
                           chain != chains.end() ? std::move(chain->second) : choose(match));
    }
    keepWhatDivides(choices);
    Remainders remainders;
    for (const auto& [match, choice] : choices) {
      remainders.insert(choice.remainders.begin(), choice.remainders.end());
    }
    ChunkWriter writer(program_);
    for (const auto& [match, choice] : choices) {
      whys_[match->post] = explainChoice(*match, choice, remainders);
      if (choice.shares.size() < 2) {
        if (match->gather && gathered_for.contains(*match->gather))
          whys_[*match->gather] = fmt::format("is not split, like {}", postText(match->post));
        continue;
      }
      if (!choice.is_chain) {
        writer.cut(*match, *choice.cut, choice.shares);
      } else {
        writer.cutChain(*match, gatherOf(*match, found), *choice.cut, choice.shares);
      }
    }
    checkServed(found);
    if (!writer.hasCut()) return std::nullopt;
    Size rest(0);
    for (const auto& [text, size] : remainders) rest = rest + size;
    return Chunked{std::move(writer).result(), rest};
  }

  // Returns the lines of explainChunks() for the latest run.
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    for (const auto& [at, why] : whys_) lines.push_back(postText(at) + " " + why);
    return lines;
  }

 private:
  const Slot& slot(SlotId id) const { return program_.slots[id]; }
  const Communicate& post(size_t at) const { return std::get<Communicate>(program_.body[at].op); }

  // Implements the rule of chunkCollectives() for rows that do not divide at the nominal sizes. If
  // the rows of at least one split divide at these sizes, drops all splits whose rows do not
  // divide. Keeps the stream splits of the program text.
  void keepWhatDivides(std::vector<std::pair<const OverlapMatch*, Choice>>& choices) {
    const auto divides = [&](const auto& each) { return dividesNominally(each.second.remainders); };
    if (std::none_of(choices.begin(), choices.end(), [&](const auto& each) {
          return each.second.shares.size() > 1 && divides(each);
        })) {
      return;
    }
    for (auto& each : choices) {
      if (!divides(each) && !wantedFor(*each.first)) each.second = {};
    }
  }

  // --- number, lengths and axes of chunks -------------------------------------------------------

  Choice choose(const OverlapMatch& match) {
    if (const auto wanted = wantedFor(match)) return asked(match, *wanted);
    if (options_.chunks != PassOptions::kAutoChunks) return fixed(match, options_.chunks);
    return cheapest(match);
  }

  Choice asked(const OverlapMatch& match, const Wanted& wanted) const {
    const std::string& name = slot(wanted.at).name;
    const auto [axis, chunks] = wanted.split;
    for (const ChunkCut& cut : match.cuts) {
      if (cut.isFlat() || cut.axes.front() != static_cast<size_t>(axis)) continue;
      if (chunks < 2) return {};
      auto remainders = remaindersOf(program_, match, cut, chunks);
      HEDDLE_USER_CHECK(remainders,
                        "%{} at line {}: its rows do not divide into {} chunks on every rank", name,
                        program_.body[match.post].line, chunks);
      return {&cut, equalShares(chunks), std::move(*remainders)};
    }
    std::vector<std::string> able;
    for (const ChunkCut& cut : match.cuts) {
      if (!cut.isFlat()) able.push_back(std::to_string(cut.axes.front()));
    }
    userError(
        "%{}: stream({}: {}): the {} of line {} and its matrix product can be split only along "
        "axis {}, where a chunk of rows is one contiguous range of memory",
        name, axis, chunks, collectiveName(match.kind), program_.body[match.post].line,
        fmt::join(able, " or axis "));
  }

  // Returns a split into `chunks` equal chunks. Prefers axes whose rows divide at the nominal
  // sizes.
  Choice fixed(const OverlapMatch& match, int64_t chunks) const {
    Choice best;
    if (chunks < 2) return best;
    for (const ChunkCut& cut : match.cuts) {
      auto remainders = remaindersOf(program_, match, cut, chunks);
      if (!remainders) continue;
      const bool divides = dividesNominally(*remainders);
      if (best.cut == nullptr || divides)
        best = {&cut, equalShares(chunks), std::move(*remainders)};
      if (divides) break;
    }
    return best;
  }

  // Returns the cheapest split whose rows divide at the nominal sizes. If no such split is faster
  // than the unsplit program, returns the cheapest split whose rows divide at other sizes. Returns
  // no split (one chunk) if this one is not faster either.
  Choice cheapest(const OverlapMatch& match) const {
    Choice best;
    double seconds = 0;
    for (const bool must_divide : {true, false}) {
      for (const ChunkCut& cut : match.cuts) {
        const ChunkedWork work = chunkedWork(program_, sizes_, match, cut);
        std::vector<ChunkShares> allowed = sharesFor(work);
        std::erase_if(allowed, [&](const ChunkShares& shares) {
          return !isOpen(match, cut, shares, must_divide);
        });
        const ChunkShares shares = cheapestShares(work, allowed);
        const double needed = chunkedSeconds(work, shares);
        if (shares.size() < 2 || (best.cut != nullptr && needed >= seconds)) continue;
        best = {&cut, shares, *remaindersOf(program_, match, cut, unitsOf(shares))};
        seconds = needed;
      }
      if (best.cut != nullptr) break;
    }
    return best;
  }

  // --- two stages, and the gather before them ---------------------------------------------------

  static const OverlapMatch* gatherOf(const OverlapMatch& match, const OverlapMatches& found) {
    if (!match.gather) return nullptr;
    const auto other =
        std::lower_bound(found.matches.begin(), found.matches.end(), *match.gather,
                         [](const OverlapMatch& each, size_t post) { return each.post < post; });
    return other != found.matches.end() && other->post == *match.gather ? &*other : nullptr;
  }

  // Returns the best split of a match together with its front. Returns no split (one chunk) in
  // these cases:
  // - The match has no front.
  // - The program text requests a stream split for the match, or for the gather before the front.
  // - The user requests one chunk.
  // - No split that suits the front (frontTakes()) divides the rows at the nominal sizes.
  // - The cost model decides, and every split takes longer than mostForChain() allows.
  Choice chainOf(const OverlapMatch& match, const OverlapMatches& found) {
    const OverlapMatch* gather = gatherOf(match, found);
    if (!match.front || wantedFor(match) || (gather != nullptr && wantedFor(*gather))) return {};
    const bool is_auto = options_.chunks == PassOptions::kAutoChunks;
    if (!is_auto && options_.chunks < 2) return {};
    Choice best;
    double seconds = is_auto ? mostForChain(match, gather) : 0;
    for (const ChunkCut& cut : match.cuts) {
      if (!frontTakes(program_, uses_, match, cut)) continue;
      const ChunkedWork work = chainedWork(program_, sizes_, match, cut);
      for (const ChunkShares& shares :
           is_auto ? sharesFor(work) : std::vector<ChunkShares>(1, equalShares(options_.chunks))) {
        auto remainders = remaindersOf(program_, match, cut, unitsOf(shares), true);
        if (shares.size() < 2 || !remainders || !dividesNominally(*remainders)) continue;
        const double needed = chunkedSeconds(work, shares);
        const bool is_longer = best.cut != nullptr && shares.size() > best.shares.size();
        if (is_auto ? needed >= (is_longer ? kCostConstants.longer_gain : 1) * seconds
                    : best.cut != nullptr)
          continue;
        best = {&cut, shares, std::move(*remainders), true};
        seconds = needed;
      }
    }
    return best;
  }

  // Returns the most seconds that a two-stage split may take. It may take slightly more than
  // separate splits of the two stages, but must take less than the unsplit program.
  double mostForChain(const OverlapMatch& match, const OverlapMatch* gather) const {
    ChunkedWork front = frontWork(program_, sizes_, match);
    if (gather != nullptr) front.flops = front.calls = 0;  // also work of match `gather`
    double whole = matmulSeconds(front);
    double apart = whole;
    for (const OverlapMatch* each : {&match, gather}) {
      if (each == nullptr) continue;
      const Choice choice = cheapest(*each);
      const ChunkCut& cut = choice.cut != nullptr ? *choice.cut : each->cuts.front();
      const ChunkedWork work = chunkedWork(program_, sizes_, *each, cut);
      whole += chunkedSeconds(work, {1});
      apart += chunkedSeconds(work, choice.shares);
    }
    return std::min(kCostConstants.chain_gain * apart, kCostConstants.chain_split_gain * whole);
  }

  bool isOpen(const OverlapMatch& match, const ChunkCut& cut, const ChunkShares& shares,
              bool must_divide) const {
    if (shares.size() == 1) return true;
    const auto remainders = remaindersOf(program_, match, cut, unitsOf(shares));
    return remainders && (!must_divide || dividesNominally(*remainders));
  }

  bool dividesNominally(const Remainders& remainders) const {
    return std::all_of(remainders.begin(), remainders.end(),
                       [&](const auto& rest) { return sizes_.value(rest.second) == 0; });
  }

  // --- stream splits of the text ----------------------------------------------------------------

  // Returns the stream split that the program text requests for a tensor of the match, if any.
  std::optional<Wanted> wantedFor(const OverlapMatch& match) {
    std::vector<SlotId> around = {post(match.post).in, post(match.post).out};
    for (size_t matmul : match.matmuls) {
      around.push_back(std::get<CallLibrary>(program_.body[matmul].op).outputs[0]);
    }
    std::optional<Wanted> wanted;
    for (SlotId id : around) {
      const std::optional<Sharding>& sharding = slot(id).tensor.sharding;
      if (!sharding || !sharding->stream) continue;
      const Sharding::StreamSplit& split = *sharding->stream;
      HEDDLE_USER_CHECK(!wanted || wanted->split == split,
                        "%{}: stream({}: {}) conflicts with stream({}: {}) of the same collective",
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

  // Throws UserError if the program text requests a stream split of a slot on several devices, but
  // no match uses this slot.
  void checkServed(const OverlapMatches& found) const {
    for (SlotId id : program_.slots.ids()) {
      const std::optional<Sharding>& sharding = slot(id).tensor.sharding;
      if (!sharding || !sharding->stream || served_.count(id) > 0) continue;
      const DeviceMesh& mesh = program_.meshes[sharding->mesh];
      HEDDLE_USER_CHECK(mesh.size() == 1,
                        "%{}: stream({}: {}): no matrix product next to a collective computes or "
                        "reads it, so there is nothing to overlap{}{}",
                        slot(id).name, sharding->stream->axis, sharding->stream->chunks,
                        whyWhole(found, id), explainUnserved(program_, id));
    }
  }

  std::string whyWhole(const OverlapMatches& found, SlotId id) const {
    for (const WholeCollective& whole : found.whole) {
      const Communicate& x = post(whole.post);
      if (x.in == id || x.out == id)
        return fmt::format(" ({}: {})", postText(whole.post), whole.why);
    }
    return {};
  }

  // --- explanations -----------------------------------------------------------------------------

  std::string postText(size_t at) const {
    const Communicate& x = post(at);
    return fmt::format("{} %{} -> %{}", collectiveName(x.kind), slot(x.in).name, slot(x.out).name);
  }

  // Returns the explanation of a choice for the user. `remainders` contains the remainders of all
  // split matches.
  std::string explainChoice(const OverlapMatch& match, const Choice& choice,
                            const Remainders& remainders) const {
    const auto micros = [&](const ChunkCut& cut, const ChunkShares& shares) {
      return 1e6 * chunkedSeconds(chunkedWork(program_, sizes_, match, cut), shares);
    };
    const char* unless = dividesNominally(remainders)
                             ? ""
                             : "; at these sizes nothing is split, because some rows do not divide";
    if (choice.is_chain) {
      const ChunkedWork work = chainedWork(program_, sizes_, match, *choice.cut);
      return fmt::format(
          "is split with its matrix product and {} before it into {} along {}: {:.0f} us{}",
          match.front->matmuls.size(), counted(choice.shares), named(*choice.cut),
          1e6 * chunkedSeconds(work, choice.shares), unless);
    }
    if (choice.shares.size() > 1) {
      return fmt::format(
          "is split with {} matrix product{} into {} along {}: {:.0f} us, unsplit {:.0f} us{}",
          match.matmuls.size(), match.matmuls.size() == 1 ? "" : "s", counted(choice.shares),
          named(*choice.cut), micros(*choice.cut, choice.shares), micros(*choice.cut, {1}), unless);
    }
    if (options_.chunks == 1) return "is not split: one chunk is requested";
    std::vector<std::string> others;
    for (const ChunkCut& cut : match.cuts) {
      ChunkShares best = {1};
      for (const ChunkShares& shares : sharesFor(chunkedWork(program_, sizes_, match, cut))) {
        const bool first = best.size() == 1 || micros(cut, shares) < micros(cut, best);
        if (shares.size() > 1 && first && isOpen(match, cut, shares, false)) best = shares;
      }
      if (best.size() == 1) continue;
      others.push_back(
          fmt::format("{} along {} {:.0f} us", counted(best), named(cut), micros(cut, best)));
    }
    if (others.empty()) return "is not split: its rows never divide on every rank";
    return fmt::format("is not split: {:.0f} us, {}", micros(match.cuts.front(), {1}),
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
  const IdVector<SlotId, SlotUses> uses_;
  std::set<SlotId> served_;             // slots with a stream split that a match uses
  std::map<size_t, std::string> whys_;  // index of a Communicate instruction -> explanation
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
