#include "tools/tune/tune_overlap.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "codegen/compile/sha256.h"
#include "comm/process/process_info.h"
#include "host/device/choice_cache.h"
#include "host/device/kernel_choices.h"
#include "host/executable.h"
#include "host/executable_parts.h"
#include "host/job/communicators.h"
#include "host/peak_memory.h"
#include "host/plan/bind_inputs.h"
#include "host/program/visit.h"
#include "host/text/program_text.h"
#include "host/unroll/unroll.h"
#include "ir/base/check.h"

namespace heddle::tools {
namespace {

using Clock = std::chrono::steady_clock;

// Increase this number if stored choices must not be used any more.
constexpr const char* kVersion = "overlap 1";
constexpr const char* kEnd = "end";
constexpr const char* kMissing = "missing";

// Returns one text per rank: its device, and the number of its machine, counted from 0 in the order
// of the ranks. All ranks must call this function.
std::vector<std::string> placesOf(const Rank& rank) {
  std::vector<std::string> texts;
  std::map<std::string, size_t> machines;
  const std::string mine = comm::machineName() + "\n" + host::identityOf(*rank.device);
  for (const std::string& text : rank.world->exchange(mine)) {
    const size_t end = text.find('\n');
    const size_t machine = machines.emplace(text.substr(0, end), machines.size()).first->second;
    texts.push_back(fmt::format("{} {}", machine, text.substr(end + 1)));
  }
  return texts;
}

// Returns the key of a stored choice: a hash of the candidates, the sizes, the transport, and the
// devices and machines of the ranks.
std::string keyOf(const Rank& rank, const std::vector<OverlapCandidate>& candidates,
                  const Inputs& inputs, const std::vector<std::string>& places) {
  std::string text =
      fmt::format("{}\n{}\n{}\n", kVersion, rank.world->transport(), fmt::join(places, "\n"));
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
       codegen::ImageCache& images, const OverlapOptions& options)
      : rank_(rank),
        candidates_(candidates),
        inputs_(inputs),
        images_(images),
        given_(options.given),
        executables_(candidates.size()) {
    parts_.monitor = rank.monitor;
    parts_.communicators = std::make_shared<host::Communicators>();
    at_line_ = options.at_line;
    if (!at_line_) at_line_ = [](const host::Program&, const auto& work) { work(); };
  }

  double run(size_t candidate) override {
    double seconds = 0;
    at_line_(candidates_[candidate].program, [&] {
      if (!executables_[candidate]) {
        create(candidate);
        runOnce(candidate);  // the first run compiles kernels
      }
      seconds = runOnce(candidate);
    });
    return seconds;
  }

 private:
  void create(size_t candidate) {
    host::ExecutableOptions options;
    options.verify = false;  // overlapCandidates() has verified the program
    options.kernel_choices = given_;
    const host::Context context{rank_.device, rank_.world, &images_, {}};
    executables_[candidate].emplace(parts_.make(candidates_[candidate].program, context, options));
  }

  // All candidates have the same inputs. Runs that write inputs find the values of earlier runs,
  // which does not matter, because nobody reads the results.
  double runOnce(size_t candidate) {
    host::Executable& executable = *executables_[candidate];
    if (arguments_.empty()) arguments_ = placeInputs(rank_, executable.program(), inputs_);
    rank_.world->barrier();
    const Clock::time_point start = Clock::now();
    executable.run(arguments_).wait();
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  const Rank& rank_;
  const std::vector<OverlapCandidate>& candidates_;
  const Inputs& inputs_;
  codegen::ImageCache& images_;
  const Choices& given_;
  decltype(OverlapOptions::at_line) at_line_;
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

std::vector<CandidateResult> measure(const Rank& rank, size_t count, CandidateTimer& runs,
                                     double most_seconds) {
  std::vector<size_t> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = i;
  Leader leader(rank, runs);
  std::vector<CandidateResult> results = measureCandidates(count, all, leader, most_seconds);
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

// An overlap that is known without a measurement, and OverlapChoice::origin. The overlap is "" if
// the ranks must measure, and kMissing if the given choices should contain one but do not.
struct KnownOverlap {
  std::string overlap;
  std::string origin;
};

KnownOverlap knownOverlap(const std::vector<OverlapCandidate>& candidates, const std::string& key,
                          host::ChoiceCache& store, const OverlapOptions& options) {
  const auto isCandidate = [&](const std::string& overlap) {
    return indexOf(candidates, overlap) < candidates.size();
  };
  const auto given = options.given.find(key);
  if (given != options.given.end() && given->second.starts_with(kOverlap)) {
    std::string overlap = given->second.substr(kOverlap.size());
    if (isCandidate(overlap)) return {std::move(overlap), "given"};
  }
  if (options.given_only) return {kMissing, ""};
  if (!options.measures) return {candidates.front().overlap, "first candidate"};
  std::string stored = options.again ? "" : store.find(key).value_or("");
  return isCandidate(stored) ? KnownOverlap{std::move(stored), "stored"} : KnownOverlap{};
}

// Returns the peak memory of a run, per rank.
std::vector<int64_t> peaksOf(const host::Program& program, const SizeBindings& sizes, int ranks) {
  const host::Program inlined = host::inlineCalls(host::concretized(program, ranks));
  std::vector<int64_t> peaks;
  for (int rank = 0; rank < ranks; ++rank) {
    peaks.push_back(host::peakOf(host::unroll(inlined, {sizes, {}, rank, ranks})));
  }
  return peaks;
}

bool asksForChunks(const Fusion& fusion) {
  return std::any_of(fusion.values().begin(), fusion.values().end(), [](const Value& value) {
    return value.tensor.sharding && value.tensor.sharding->stream;
  });
}

// Compiles the fusion for one value of --overlap. Returns nullopt if this is not possible.
std::optional<host::Program> programFor(const Prepared& prepared, const Options& options, int ranks,
                                        const char* overlap) {
  Prepared other;
  other.source = prepared.source;
  other.inputs = prepared.inputs;
  Options changed = options;
  changed.overlap = overlap;
  try {
    compileProgram(other, changed, ranks);
  } catch (const UserError&) {
    return std::nullopt;
  }
  return std::move(other.program);
}

}  // namespace

std::vector<OverlapCandidate> overlapCandidates(const Prepared& prepared, const Options& options,
                                                int ranks) {
  std::vector<OverlapCandidate> candidates;
  candidates.push_back({options.overlap, prepared.program});
  const auto* fusion = std::get_if<Fusion>(&prepared.source);
  if (fusion == nullptr) return candidates;
  std::vector<std::string> texts = {host::print(prepared.program)};
  const std::vector<int64_t> most = peaksOf(prepared.program, prepared.inputs.sizes, ranks);
  for (const char* overlap : {"off", "1", "2", "4", "8"}) {
    if (overlap == std::string_view("off") && asksForChunks(*fusion)) continue;
    std::optional<host::Program> program = programFor(prepared, options, ranks, overlap);
    if (!program) continue;
    std::string text = host::print(*program);
    if (std::ranges::find(texts, text) != texts.end()) continue;
    const std::vector<int64_t> peaks = peaksOf(*program, prepared.inputs.sizes, ranks);
    if (!std::ranges::equal(peaks, most, std::ranges::less_equal())) continue;
    texts.push_back(std::move(text));
    candidates.push_back({overlap, std::move(*program)});
  }
  return candidates;
}

OverlapChoice chooseOverlap(const Rank& rank, const std::vector<OverlapCandidate>& candidates,
                            const Inputs& inputs, codegen::ImageCache& images,
                            const OverlapOptions& options) {
  OverlapChoice choice;
  if (candidates.size() < 2) return choice;
  const comm::World::Task task(rank.world, comm::RankTask::TuningKernels);
  const std::vector<std::string> places = placesOf(rank);
  std::optional<host::ChoiceCache> store;
  std::string known;
  if (rank.rank == 0) {
    store.emplace(codegen::ImageCache::defaultFolder(), "overlap of jobs");
    choice.key = keyOf(rank, candidates, inputs, places);
    const KnownOverlap found = knownOverlap(candidates, choice.key, *store, options);
    known = found.overlap;
    choice.origin = found.origin;
  }
  known = rank.world->exchange(known).at(0);
  HEDDLE_USER_CHECK(known != kMissing,
                    "--choices-only: the file has no overlap for this job; `heddle run --tune=full "
                    "--export` makes one");
  if (known.empty()) {
    const std::unique_ptr<CandidateTimer> timer =
        options.makeTimer ? options.makeTimer()
                          : std::make_unique<Runs>(rank, candidates, inputs, images, options);
    if (rank.rank == 0) {
      choice.results = measure(rank, candidates.size(), *timer, options.most_seconds);
      std::vector<size_t> all(candidates.size());
      for (size_t i = 0; i < all.size(); ++i) all[i] = i;
      known = candidates[winnerOf(choice.results, all)].overlap;
      store->put(choice.key, known);
    } else {
      follow(rank, *timer);
    }
    known = rank.world->exchange(known).at(0);
  }
  choice.chosen = indexOf(candidates, known);
  HEDDLE_CHECK(choice.chosen < candidates.size(), "rank 0 chose --overlap {}", known);
  return choice;
}

bool hasOverlap(const Choices& choices) {
  return std::ranges::any_of(choices,
                             [](const auto& each) { return each.second.starts_with(kOverlap); });
}

std::string describe(const std::vector<OverlapCandidate>& candidates, const OverlapChoice& choice) {
  const std::string& overlap = candidates.at(choice.chosen).overlap;
  if (choice.results.empty()) return fmt::format("{} ({})", overlap, choice.origin);
  std::vector<std::string> times;
  for (size_t i = 0; i < candidates.size(); ++i) {
    times.push_back(
        fmt::format("{} {:.3f} ms", candidates[i].overlap, 1e3 * choice.results[i].seconds));
  }
  return fmt::format("{} ({})", overlap, fmt::join(times, ", "));
}

}  // namespace heddle::tools
