#include "ir/passes/pipeline.h"

#include <algorithm>
#include <chrono>

#include "ir/base/error.h"
#include "ir/graph/remove_dead.h"
#include "ir/graph/verify.h"
#include "ir/passes/concretize_meshes.h"
#include "ir/passes/follow_orders.h"
#include "ir/passes/fuse_epilogue.h"
#include "ir/passes/materialize_views.h"
#include "ir/passes/note_stream_splits.h"
#include "ir/passes/sharding/insert_resharding.h"
#include "ir/passes/sharding/join_reductions.h"
#include "ir/passes/sharding/propagate_sharding.h"
#include "ir/passes/sharding/split_linear.h"

namespace heddle {
namespace {

struct Pass {
  std::string_view name;
  Fusion (*run)(const Fusion&, int64_t job_size);
};

Fusion meshes(const Fusion& fusion, int64_t job_size) { return concretizeMeshes(fusion, job_size); }
Fusion streams(const Fusion& fusion, int64_t) { return noteStreamSplits(fusion); }
Fusion dead(const Fusion& fusion, int64_t) { return removeDead(fusion); }
Fusion shardings(const Fusion& fusion, int64_t) { return propagateSharding(fusion); }
Fusion resharding(const Fusion& fusion, int64_t) { return insertResharding(fusion); }
Fusion join(const Fusion& fusion, int64_t) { return joinReductions(fusion); }
Fusion split(const Fusion& fusion, int64_t) { return splitLinear(fusion); }
Fusion epilogues(const Fusion& fusion, int64_t) { return fuseEpilogue(fusion); }
Fusion orders(const Fusion& fusion, int64_t) { return followOrders(fusion); }
Fusion views(const Fusion& fusion, int64_t) { return materializeViews(fusion); }

// The compiler, as far as it rewrites fusions.
constexpr Pass kPasses[] = {
    {"concretizeMeshes", meshes},      // first: all below compare and count the devices of meshes
    {"removeDead", dead},              // before shardings: what nobody needs must not pull at them
    {"noteStreamSplits", streams},     // before shardings, which are about places only
    {"propagateSharding", shardings},  // decides where every value lives, and moves nothing
    {"splitLinear", split},            // a bias must not be added to each part of a sum
    {"insertResharding",
     resharding},  // makes each move an expression, and each op local to its rank
    {"joinReductions",
     join},  // each sum that stands is reduced for itself: those of one sum need not be
    {"fuseEpilogue",
     epilogues},               // behind it: a collective may stand between product and activation
    {"followOrders", orders},  // behind it: what is fused away is not in the way; the hints stand
    {"materializeViews", views},  // last: only now are all memory orders known
};

void runOne(const Pass& pass, int64_t job_size, const PassOptions& options, Fusion& fusion) {
  auto start = std::chrono::steady_clock::now();
  Fusion result = pass.run(fusion, job_size);
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (options.timing) options.timing(pass.name, seconds.count());
  if (options.verify) verify(result);
  if (options.dump && !sameGraph(fusion, result)) options.dump(pass.name, result);
  fusion = std::move(result);
}

void checkSkips(const std::vector<std::string>& skip) {
  std::vector<std::string_view> names = passNames();
  for (const std::string& name : skip) {
    HEDDLE_USER_CHECK(std::find(names.begin(), names.end(), name) != names.end(),
                      "there is no pass '{}'; the passes are {}", name, fmt::join(names, ", "));
  }
}

}  // namespace

std::vector<std::string_view> passNames() {
  std::vector<std::string_view> names;
  for (const Pass& pass : kPasses) names.push_back(pass.name);
  return names;
}

Fusion runPasses(const Fusion& fusion, int64_t job_size, const PassOptions& options) {
  checkSkips(options.skip);
  Fusion result = fusion;
  for (const Pass& pass : kPasses) {
    bool skipped =
        std::find(options.skip.begin(), options.skip.end(), pass.name) != options.skip.end();
    if (!skipped) runOne(pass, job_size, options, result);
  }
  return result;
}

}  // namespace heddle
