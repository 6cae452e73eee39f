#include "host/passes/pipeline.h"

#include <algorithm>
#include <chrono>

#include "host/passes/assign_streams.h"
#include "host/passes/chunk/branch_on_remainder.h"
#include "host/passes/chunk/chunk_collectives.h"
#include "host/passes/coalesce_collectives.h"
#include "host/passes/inline_calls.h"
#include "host/passes/insert_frees.h"
#include "host/passes/insert_sync.h"
#include "host/passes/lift_posts.h"
#include "host/passes/sink_waits.h"
#include "host/verify/verify.h"
#include "ir/base/error.h"

namespace heddle::host {
namespace {

struct Pass {
  std::string_view name;
  Program (*run)(Program, const PassOptions&);
  bool overlap_only;     // left out when communication stays on stream 0
  std::string_view why;  // here, in this order
};

template <Program (*pass)(Program)>
Program plain(Program program, const PassOptions&) {
  return pass(std::move(program));
}

constexpr Pass kFirst = {"inline_calls", &plain<expandCalls>, false,
                         "the other passes see every access"};

// Here, as long as a wait still follows each post. Where the sizes of a run decide whether chunks
// are even, the passes below go over both versions, and the run takes one.
constexpr std::string_view kChunks = "chunk_collectives";

constexpr Pass kOrdering[] = {
    {"lift_posts", &plain<liftPosts>, true, "a post goes out as soon as its input is ready"},
    {"coalesce_collectives", &coalesceCollectives, true,
     "posts that became neighbours are one; their wait is still to sink"},
    {"assign_streams", &plain<assignStreams>, true, "waits sink to the stream that needs them"},
    {"sink_waits", &plain<sinkWaits>, true, "what is between a post and its wait overlaps"},
    {"insert_sync", &plain<insertSync>, false,
     "streams and waits stand: only now is it known what is missing"},
    {"insert_frees", &plain<insertFrees>, false,
     "a free goes where stream 0 is ordered after all uses"},
};

bool isSkipped(std::string_view name, const PassOptions& options) {
  return std::find(options.skip.begin(), options.skip.end(), name) != options.skip.end();
}

template <class Work>
auto timed(std::string_view name, const PassOptions& options, const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  auto result = work();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (options.timing) options.timing(name, took.count());
  return result;
}

// The one door: skip, time, dump if changed.
Program through(const Pass& pass, Program program, const PassOptions& options) {
  if (isSkipped(pass.name, options)) return program;
  if (pass.overlap_only && !options.overlap) return program;
  const Program before = options.dump ? program : Program();
  program = timed(pass.name, options, [&] { return pass.run(std::move(program), options); });
  if (options.dump && !sameProgram(before, program)) options.dump(pass.name, program);
  return program;
}

std::optional<Chunked> inChunks(const Program& program, const PassOptions& options) {
  if (isSkipped(kChunks, options) || !options.overlap) return std::nullopt;
  auto chunked = timed(kChunks, options, [&] { return chunkCollectives(program, options); });
  if (options.dump && chunked) options.dump(kChunks, chunked->program);
  return chunked;
}

// They have been heard, or the caller wants no overlap.
void dropStreamSplits(Program& program) {
  for (Slot& slot : program.slots) {
    if (slot.tensor.sharding) slot.tensor.sharding->stream.reset();
  }
}

Program ordered(Program program, const PassOptions& options) {
  for (const Pass& pass : kOrdering) program = through(pass, std::move(program), options);
  return program;
}

void checkSkipped(const PassOptions& options) {
  for (const std::string& name : options.skip) {
    const bool found = name == kFirst.name || name == kChunks ||
                       std::any_of(std::begin(kOrdering), std::end(kOrdering),
                                   [&](const Pass& pass) { return pass.name == name; });
    HEDDLE_USER_CHECK(found, "there is no host pass {} to skip", name);
  }
}

Program run(Program program, const PassOptions& options, bool verifies) {
  checkSkipped(options);
  HEDDLE_USER_CHECK(options.chunks >= 0 && options.chunks <= PassOptions::kMostChunks,
                    "{} chunks asked for, expected 1 to {}", options.chunks,
                    PassOptions::kMostChunks);
  program = through(kFirst, std::move(program), options);
  std::optional<Chunked> chunked = inChunks(program, options);
  dropStreamSplits(program);
  if (chunked) dropStreamSplits(chunked->program);
  program = ordered(std::move(program), options);
  if (chunked) {
    // Alone it may not exist at the sizes that verify() tries.
    Program even = ordered(std::move(chunked->program), options);
    if (verifies) verify(program);
    program = chunked->rest.isConstant(0)
                  ? std::move(even)
                  : branchOnRemainder(chunked->rest, std::move(even), std::move(program));
  }
  if (verifies) verify(program);
  return program;
}

}  // namespace

Program runPasses(Program program, const PassOptions& options) {
  return run(std::move(program), options, true);
}

Program runPassesAgain(Program program, const PassOptions& options) {
  return run(std::move(program), options, false);
}

}  // namespace heddle::host
