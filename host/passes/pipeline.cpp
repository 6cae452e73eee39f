#include "host/passes/pipeline.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "host/passes/assign_streams.h"
#include "host/passes/chunk/branch_on_remainder.h"
#include "host/passes/chunk/chunk_collectives.h"
#include "host/passes/coalesce_collectives.h"
#include "host/passes/inline_calls.h"
#include "host/passes/insert_frees.h"
#include "host/passes/insert_sync.h"
#include "host/passes/lift_posts.h"
#include "host/passes/reuse_buffers.h"
#include "host/passes/sink_waits.h"
#include "host/passes/write_in_place.h"
#include "host/text/program_text.h"
#include "host/verify/check_races.h"
#include "host/verify/verify.h"
#include "host/verify/verify_structure.h"
#include "ir/base/check.h"
#include "ir/base/pass_driver.h"
#include "ir/passes/pipeline.h"

namespace heddle::host {
namespace {

// The checks of verify() (host/verify/verify.h) that a program must pass after a pass.
enum class Legal {
  Structure,  // only the checks that need no sizes; races are not checked
  Order,      // also the checks of races and of collectives, but not the checks of frees
  Program,    // all checks
};

struct Pass {
  std::string_view name;
  Program (*run)(Program, const PassOptions&);
  bool overlap_only;     // true: the pass is skipped if PassOptions::overlap is false
  Legal legal;           // the checks that the program must pass afterwards
  std::string_view why;  // the reason for the position of the pass
};

template <Program (*pass)(Program)>
Program plain(Program program, const PassOptions&) {
  return pass(std::move(program));
}

constexpr Pass kFirst = {"inline_calls", &plain<expandCalls>, false, Legal::Order,
                         "the other passes see every access"};

// The pass chunk_collectives runs before coalesce_collectives and assign_streams, because it splits
// only collectives that are not joined with others, in programs that use one stream. If the sizes
// of a run decide whether the rows divide into chunks, there are two versions of the program: split
// and unsplit. The later passes run on both, and each run selects one of them. The sizes that
// verify() tries may not divide into chunks, so only the structure of the split version is
// verified after each pass.
constexpr std::string_view kChunks = "chunk_collectives";

constexpr Pass kOrdering[] = {
    {"write_in_place", &plain<writeInPlace>, false, Legal::Order,
     "the chunks are known, and no stream has been assigned yet"},
    {"lift_posts", &plain<liftPosts>, true, Legal::Order,
     "a post starts as soon as its input is ready"},
    {"coalesce_collectives", &coalesceCollectives, true, Legal::Order,
     "posts that became neighbours are joined before their waits sink"},
    {"assign_streams", &plain<assignStreams>, true, Legal::Structure,
     "waits sink to the stream that needs them; until insert_sync, streams race"},
    {"sink_waits", &plain<sinkWaits>, true, Legal::Structure,
     "work between a post and its wait overlaps with the operation"},
    {"allocate_first", &plain<allocateFirst>, false, Legal::Structure,
     "the passes above may move writes to inputs; the next one makes the order final"},
    {"insert_sync", &plain<insertSync>, false, Legal::Order,
     "streams and waits are final, so the missing orders are known"},
    {"insert_frees", &plain<insertFrees>, false, Legal::Program,
     "a buffer is freed where stream 0 is ordered after all its uses"},
    {"reuse_buffers", &plain<reuseBuffers>, false, Legal::Program,
     "streams and frees are final, so it is known which values are dead"},
};

void verifyAs(Legal legal, const Program& program) {
  if (legal == Legal::Structure) verifyStructure(program);
  if (legal == Legal::Order) verifyOrder(program);
  if (legal == Legal::Program) verify(program);
}

bool isLegal(Legal legal, const Program& program) {
  try {
    verifyAs(legal, program);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

class Pipeline {
 public:
  explicit Pipeline(const PassOptions& options)
      : options_(options), driver_(options, sameProgram, print) {}

  Program run(Program program) {
    // Only insert_sync removes races. If the program is illegal before the passes, or if the caller
    // skips insert_sync, a race is not an error of a pass. Races are then checked only at the end.
    const bool may_race = driver_.skips("insert_sync");
    if (options_.verify_each && (may_race || !isLegal(Legal::Order, program))) {
      most_ = Legal::Structure;
    }
    program = through(kFirst, std::move(program));
    forgetReuses(program);
    std::optional<Chunked> chunked = inChunks(program);
    dropStreamSplits(program);
    if (chunked) dropStreamSplits(chunked->program);
    program = ordered(std::move(program));
    if (chunked) {
      if (options_.verify) verify(program);
      most_ = Legal::Structure;
      Program even = ordered(std::move(chunked->program));
      program = chunked->rest.isConstant(0)
                    ? std::move(even)
                    : branchOnRemainder(chunked->rest, std::move(even), std::move(program));
    }
    if (options_.verify) verify(program);
    return program;
  }

 private:
  Program through(const Pass& pass, Program program) const {
    if (pass.overlap_only && !options_.overlap) return program;
    return driver_.run(
        pass.name, std::move(program),
        [&](Program input) { return pass.run(std::move(input), options_); },
        [&](const Program& result) { verifyAs(std::min(pass.legal, most_), result); });
  }

  std::optional<Chunked> inChunks(const Program& program) const {
    std::optional<Chunked> chunked;
    if (!options_.overlap) return chunked;
    Program even = driver_.run(
        kChunks, program,
        [&](Program input) {
          chunked = chunkCollectives(input, options_);
          return chunked ? std::move(chunked->program) : std::move(input);
        },
        verifyStructure);
    if (chunked) chunked->program = std::move(even);
    return chunked;
  }

  // Removes the stream splits from the types of the slots. Only chunk_collectives uses them.
  static void dropStreamSplits(Program& program) {
    for (Slot& slot : program.slots) {
      if (slot.tensor.sharding) slot.tensor.sharding->stream.reset();
    }
  }

  Program ordered(Program program) const {
    for (const Pass& pass : kOrdering) program = through(pass, std::move(program));
    return program;
  }

  const PassOptions& options_;
  const PassDriver<Program> driver_;
  Legal most_ = Legal::Program;  // the strictest checks that follow a pass
};

}  // namespace

std::vector<std::string_view> passNames() {
  std::vector<std::string_view> names = {kFirst.name, kChunks};
  for (const Pass& pass : kOrdering) names.push_back(pass.name);
  return names;
}

Fusion runFusionPasses(const Fusion& fusion, int64_t job_size, const PassOptions& options) {
  return heddle::runPasses(fusion, job_size, options, passNames());
}

Program runPasses(Program program, const PassOptions& options) {
  std::vector<std::string_view> names = heddle::passNames();
  const std::vector<std::string_view> own = passNames();
  names.insert(names.end(), own.begin(), own.end());
  checkSkippedPasses(options.skip, names);
  HEDDLE_USER_CHECK(options.chunks >= 0 && options.chunks <= PassOptions::kMostChunks,
                    "{} chunks requested, expected 1 to {}", options.chunks,
                    PassOptions::kMostChunks);
  return Pipeline(options).run(std::move(program));
}

}  // namespace heddle::host
