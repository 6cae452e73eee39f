#include <algorithm>
#include <chrono>

#include "host/passes.h"
#include "host/passes/assign_streams.h"
#include "host/passes/inline_calls.h"
#include "host/passes/insert_frees.h"
#include "host/passes/insert_sync.h"
#include "host/passes/lift_posts.h"
#include "host/passes/sink_waits.h"
#include "host/verify.h"
#include "ir/error.h"

namespace heddle::host {
namespace {

struct Pass {
  std::string_view name;
  Program (*run)(Program);
  bool overlap_only;     // left out when communication stays on stream 0
  std::string_view why;  // here, in this order
};

constexpr Pass kPasses[] = {
    {"inline_calls", &expandCalls, false, "the other passes see every access"},
    {"lift_posts", &liftPosts, true, "a post goes out as soon as its input is ready"},
    {"assign_streams", &assignStreams, true, "waits sink to the stream that needs them"},
    {"sink_waits", &sinkWaits, true, "what is between a post and its wait overlaps"},
    {"insert_sync", &insertSync, false,
     "streams and waits stand: only now is it known what is missing"},
    {"insert_frees", &insertFrees, false, "a free goes where stream 0 is ordered after all uses"},
};

// The one door: skip, time, dump if changed.
Program through(const Pass& pass, Program program, const PassOptions& options) {
  const auto skipped = std::find(options.skip.begin(), options.skip.end(), pass.name);
  if (skipped != options.skip.end()) return program;
  if (pass.overlap_only && !options.overlap) return program;
  const Program before = options.dump ? program : Program();
  const auto start = std::chrono::steady_clock::now();
  program = pass.run(std::move(program));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (options.timing) options.timing(pass.name, took.count());
  if (options.dump && !sameProgram(before, program)) options.dump(pass.name, program);
  return program;
}

}  // namespace

Program runPasses(Program program, const PassOptions& options) {
  for (const std::string& name : options.skip) {
    HEDDLE_USER_CHECK(std::any_of(std::begin(kPasses), std::end(kPasses),
                                  [&](const Pass& pass) { return pass.name == name; }),
                      "there is no host pass {} to skip", name);
  }
  for (const Pass& pass : kPasses) program = through(pass, std::move(program), options);
  verify(program);
  return program;
}

}  // namespace heddle::host
