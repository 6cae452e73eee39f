#include "tools/tune/tune_overlap.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "codegen/compile/sha256.h"
#include "host/device/choice_cache.h"
#include "host/executable.h"
#include "host/executable_parts.h"
#include "host/job/communicators.h"
#include "host/text/program_text.h"
#include "ir/base/check.h"

namespace heddle::tools {
namespace {

using Clock = std::chrono::steady_clock;

// Increase this number if stored choices must not be used any more.
constexpr const char* kVersion = "overlap 1";
constexpr const char* kEnd = "end";

// Returns the key of a stored choice. It contains everything on which the times depend.
std::string keyOf(const Rank& rank, const std::vector<OverlapCandidate>& candidates,
                  const Inputs& inputs) {
  std::string text = fmt::format("{}\n{}\n{}\n{}\n", kVersion, rank.ranks, rank.world->transport(),
                                 rank.device->description());
  for (const auto& [symbol, size] : inputs.sizes) text += fmt::format("{}={}\n", symbol, size);
  for (const OverlapCandidate& each : candidates) {
    text += each.overlap + "\n" + host::print(each.program);
  }
  return codegen::sha256(text);
}

// Runs candidates on this rank. All ranks must run the same candidates in the same order.
class Runs : public CandidateTimer {
 public:
  Runs(const Rank& rank, const std::vector<OverlapCandidate>& candidates, const Inputs& inputs,
       codegen::ImageCache& images)
      : rank_(rank),
        candidates_(candidates),
        inputs_(inputs),
        images_(images),
        executables_(candidates.size()) {
    parts_.monitor = rank.monitor;
    parts_.communicators = std::make_shared<host::Communicators>();
  }

  double run(size_t candidate) override {
    if (!executables_[candidate]) {
      create(candidate);
      runOnce(candidate);  // the first run compiles kernels
    }
    return runOnce(candidate);
  }

 private:
  void create(size_t candidate) {
    host::ExecutableOptions options;
    options.verify = false;  // overlapCandidates() has verified the program
    const host::Context context{rank_.device, rank_.world, &images_, {}};
    executables_[candidate].emplace(parts_.make(candidates_[candidate].program, context, options));
  }

  // A run that writes its inputs gets new ones. All candidates have the same inputs.
  double runOnce(size_t candidate) {
    host::Executable& executable = *executables_[candidate];
    if (arguments_.empty() || !executable.program().reuses.empty()) {
      arguments_.clear();
      arguments_ = placeInputs(rank_, executable.program(), inputs_);
    }
    rank_.world->barrier();
    const Clock::time_point start = Clock::now();
    executable.run(arguments_).wait();
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  const Rank& rank_;
  const std::vector<OverlapCandidate>& candidates_;
  const Inputs& inputs_;
  codegen::ImageCache& images_;
  host::ExecutableParts parts_;  // all candidates share communicators
  std::vector<std::optional<host::Executable>> executables_;
  std::vector<host::Argument> arguments_;
};

// Runs a candidate on this rank, and returns the longest time of all ranks. All ranks must call
// this function.
double runOnAll(const Rank& rank, CandidateTimer& timer, size_t candidate) {
  const std::string mine = fmt::format("{:.17g}", timer.run(candidate));
  double slowest = 0;
  for (const std::string& text : rank.world->exchange(mine)) {
    slowest = std::max(slowest, std::stod(text));
  }
  return slowest;
}

// The timer of rank 0: tells the other ranks which candidate to run next.
class Leader : public CandidateTimer {
 public:
  Leader(const Rank& rank, CandidateTimer& runs) : rank_(rank), runs_(runs) {}
  double run(size_t candidate) override {
    rank_.world->exchange(std::to_string(candidate));
    return runOnAll(rank_, runs_, candidate);
  }

 private:
  const Rank& rank_;
  CandidateTimer& runs_;
};

std::vector<CandidateResult> measure(const Rank& rank, size_t count, CandidateTimer& runs) {
  std::vector<size_t> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = i;
  Leader leader(rank, runs);
  std::vector<CandidateResult> results = measureCandidates(count, all, leader);
  rank.world->exchange(kEnd);
  return results;
}

// Runs what rank 0 says, until it has finished.
void follow(const Rank& rank, CandidateTimer& runs) {
  for (;;) {
    const std::string next = rank.world->exchange("").at(0);
    if (next == kEnd) return;
    runOnAll(rank, runs, std::stoul(next));
  }
}

size_t indexOf(const std::vector<OverlapCandidate>& candidates, const std::string& overlap) {
  const auto found = std::ranges::find(candidates, overlap, &OverlapCandidate::overlap);
  return static_cast<size_t>(found - candidates.begin());
}

}  // namespace

std::vector<OverlapCandidate> overlapCandidates(const Prepared& prepared, const Options& options,
                                                int ranks) {
  std::vector<OverlapCandidate> candidates;
  candidates.push_back({options.overlap, prepared.program});
  if (!std::holds_alternative<Fusion>(prepared.source)) return candidates;
  std::vector<std::string> texts = {host::print(prepared.program)};
  for (const char* overlap : {"off", "1", "2", "4", "8"}) {
    Prepared other;
    other.source = prepared.source;
    other.inputs = prepared.inputs;
    Options changed = options;
    changed.overlap = overlap;
    try {
      compileProgram(other, changed, ranks);
    } catch (const UserError&) {
      continue;  // for example, the option --force names a kernel that this program lacks
    }
    std::string text = host::print(other.program);
    if (std::ranges::find(texts, text) != texts.end()) continue;
    texts.push_back(std::move(text));
    candidates.push_back({overlap, std::move(other.program)});
  }
  return candidates;
}

OverlapChoice chooseOverlap(const Rank& rank, const std::vector<OverlapCandidate>& candidates,
                            const Inputs& inputs, codegen::ImageCache& images,
                            const OverlapOptions& options) {
  OverlapChoice choice;
  if (candidates.size() < 2) return choice;
  std::optional<host::ChoiceCache> store;
  std::string key;
  std::string known;
  if (rank.rank == 0) {
    store.emplace(codegen::ImageCache::defaultFolder(), "overlap of jobs");
    key = keyOf(rank, candidates, inputs);
    if (!options.again) known = store->find(key).value_or("");
    if (indexOf(candidates, known) == candidates.size()) known.clear();
  }
  known = rank.world->exchange(known).at(0);
  if (known.empty()) {
    const std::unique_ptr<CandidateTimer> timer =
        options.makeTimer ? options.makeTimer()
                          : std::make_unique<Runs>(rank, candidates, inputs, images);
    if (rank.rank == 0) {
      choice.results = measure(rank, candidates.size(), *timer);
      std::vector<size_t> all(candidates.size());
      for (size_t i = 0; i < all.size(); ++i) all[i] = i;
      known = candidates[winnerOf(choice.results, all)].overlap;
      store->put(key, known);
    } else {
      follow(rank, *timer);
    }
    known = rank.world->exchange(known).at(0);
  }
  choice.chosen = indexOf(candidates, known);
  HEDDLE_CHECK(choice.chosen < candidates.size(), "rank 0 chose --overlap {}", known);
  return choice;
}

std::string describe(const std::vector<OverlapCandidate>& candidates, const OverlapChoice& choice) {
  const std::string& overlap = candidates.at(choice.chosen).overlap;
  if (choice.results.empty()) return overlap + " (stored)";
  std::vector<std::string> times;
  for (size_t i = 0; i < candidates.size(); ++i) {
    times.push_back(
        fmt::format("{} {:.3f} ms", candidates[i].overlap, 1e3 * choice.results[i].seconds));
  }
  return fmt::format("{} ({})", overlap, fmt::join(times, ", "));
}

}  // namespace heddle::tools
