#include "ir/passes/pipeline.h"

#include <utility>

#include "ir/analysis/concretize_sizes.h"
#include "ir/base/check.h"
#include "ir/graph/remove_dead.h"
#include "ir/graph/size_scalars.h"
#include "ir/graph/verify.h"
#include "ir/passes/concretize_meshes.h"
#include "ir/passes/drop_shardings.h"
#include "ir/passes/fuse_epilogue.h"
#include "ir/passes/gather_one_hots.h"
#include "ir/passes/merge_scalars.h"
#include "ir/passes/note_stream_splits.h"
#include "ir/passes/orders/follow_orders.h"
#include "ir/passes/orders/infer_orders.h"
#include "ir/passes/orders/order_for_reshapes.h"
#include "ir/passes/orders/require_orders.h"
#include "ir/passes/sharding/insert_resharding.h"
#include "ir/passes/sharding/join_reductions.h"
#include "ir/passes/sharding/propagate_sharding.h"
#include "ir/passes/sharding/reused_inputs.h"
#include "ir/passes/sharding/split_linear.h"
#include "ir/passes/shift_pads.h"
#include "ir/passes/take_generated.h"
#include "ir/passes/views/materialize_views.h"
#include "ir/passes/views/move_permutes.h"
#include "ir/passes/views/move_picks.h"
#include "ir/passes/views/split_axes.h"
#include "ir/text/fusion_text.h"

namespace heddle {
namespace {

struct Pass {
  std::string_view name;
  Fusion (*run)(Fusion, int64_t job_size);
};

Fusion sizes(Fusion fusion, int64_t) {
  const SizeBindings sizes = defaultSizes(fusion);
  return concretizeSizes(std::move(fusion), sizes);
}
Fusion meshes(Fusion fusion, int64_t job_size) {
  return concretizeMeshes(std::move(fusion), job_size);
}
Fusion pads(Fusion fusion, int64_t) { return shiftPads(std::move(fusion)); }
Fusion streams(Fusion fusion, int64_t) { return noteStreamSplits(std::move(fusion)); }
Fusion dead(Fusion fusion, int64_t) { return removeDead(std::move(fusion)); }
Fusion reuses(Fusion fusion, int64_t) { return shardReusedOutputs(std::move(fusion)); }
Fusion moves(Fusion fusion, int64_t) { return moveReusedOutputs(std::move(fusion)); }
Fusion shardings(Fusion fusion, int64_t) { return propagateSharding(std::move(fusion)); }
Fusion drop(Fusion fusion, int64_t job_size) { return dropShardings(std::move(fusion), job_size); }
Fusion require(Fusion fusion, int64_t) { return requireOrders(std::move(fusion)); }
Fusion resharding(Fusion fusion, int64_t) { return insertResharding(std::move(fusion)); }
Fusion join(Fusion fusion, int64_t) { return joinReductions(std::move(fusion)); }
Fusion split(Fusion fusion, int64_t) { return splitLinear(std::move(fusion)); }
Fusion epilogues(Fusion fusion, int64_t) { return fuseEpilogue(std::move(fusion)); }
Fusion oneHots(Fusion fusion, int64_t) { return gatherOneHots(std::move(fusion)); }
Fusion taken(Fusion fusion, int64_t) { return takeGenerated(std::move(fusion)); }
Fusion scalars(Fusion fusion, int64_t) { return mergeScalars(fusion); }
Fusion permutes(Fusion fusion, int64_t) { return movePermutes(fusion); }
Fusion picks(Fusion fusion, int64_t) { return movePicks(std::move(fusion)); }
Fusion axes(Fusion fusion, int64_t) { return splitAxes(std::move(fusion)); }
Fusion orders(Fusion fusion, int64_t) { return followOrders(fusion); }
Fusion infer(Fusion fusion, int64_t) { return inferOrders(fusion); }
Fusion reshapes(Fusion fusion, int64_t) { return orderForReshapes(fusion); }
Fusion views(Fusion fusion, int64_t) { return materializeViews(fusion); }

// The comment at each pass states why the pass is at this position. The result of every pass
// satisfies verify().
constexpr Pass kPasses[] = {
    // First, because the other passes are written for axes that certainly broadcast or certainly do
    // not. A symbolic axis (IterKind::Symbolic) leaves this open.
    {"concretizeSizes", sizes},
    // Before propagateSharding, the first pass that counts the devices of meshes.
    {"concretizeMeshes", meshes},
    // Before shardings are chosen, because expressions that no output needs must not influence
    // them.
    {"removeDead", dead},
    // Before shardings and memory orders are chosen, because the values that it adds need them too.
    {"shiftPads", pads},
    // Removes the stream splits (requests of the user to compute a value in parts) from the
    // shardings. Before propagateSharding, which does not accept them.
    {"noteStreamSplits", streams},
    // Before propagateSharding, which ignores that an output may be stored in an input.
    {"shardReusedOutputs", reuses},
    // Before the passes that split ops and move data, because they need the sharding of every
    // value.
    {"propagateSharding", shardings},
    // After the passes that choose shardings, because it removes all shardings in a job of one
    // rank. Before the passes that move data.
    {"dropShardings", drop},
    // After dropShardings: without shardings, this pass moves nothing. Before the passes that move
    // data.
    {"moveReusedOutputs", moves},
    // After shardings are chosen: if an output with a required order is a view, the pass copies it,
    // and the copy gets the sharding of the view. Before the passes that move data and choose
    // memory orders.
    {"requireOrders", require},
    // After dropShardings, because the new values get the shardings that are chosen for the values
    // that they replace. Before insertResharding: if the operand of a take is sharded,
    // insertResharding would communicate its elements, although every rank can generate them.
    {"takeGenerated", taken},
    // After shardings are chosen, because the shardings determine which sums are split over
    // devices.
    {"splitLinear", split},
    // After splitLinear, because insertResharding inserts reductions between the ops that
    // splitLinear separated. After this pass, only `set` expressions communicate.
    {"insertResharding", resharding},
    // After insertResharding, because it joins the reductions that insertResharding inserted.
    {"joinReductions", join},
    // After insertResharding, because a collective may be between a matrix product and its
    // activation.
    {"fuseEpilogue", epilogues},
    // After propagateSharding, because the pass changes only sums of values without a sharding. An
    // earlier pass could not know which values propagateSharding will give a sharding.
    {"gatherOneHots", oneHots},
    // After the passes above, because some of them add scalars. Before segmentation: expressions
    // that differ only in equal scalars become equal, and code generation computes equal
    // expressions once.
    {"mergeScalars", scalars},
    // After the passes that choose shardings, because it moves no value that has a sharding. Before
    // splitAxes, which then finds fewer permutes between reshapes and the kernels around them.
    {"movePermutes", permutes},
    // After movePermutes: a permute between a pick and the kernel before it would keep the pick
    // where it is.
    {"movePicks", picks},
    // After fuseEpilogue, which fuses an activation only if it has the shape of its matrix product.
    // Before followOrders, because splitAxes skips values that have a memory order.
    {"splitAxes", axes},
    // After fuseEpilogue, because an expression that was fused into a matrix product no longer
    // needs a memory order of its own.
    {"followOrders", orders},
    // After followOrders, because the hints of followOrders serve collectives and have priority.
    {"inferOrders", infer},
    // After the passes that follow orders, because it chooses orders only for values that have no
    // order yet.
    {"orderForReshapes", reshapes},
    // Last, because it needs the final memory orders.
    {"materializeViews", views},
};

}  // namespace

std::vector<std::string_view> passNames() {
  std::vector<std::string_view> names;
  for (const Pass& pass : kPasses) names.push_back(pass.name);
  return names;
}

Fusion runPasses(const Fusion& fusion, int64_t job_size, const PassOptions& options,
                 const std::vector<std::string_view>& other_passes) {
  std::vector<std::string_view> names = passNames();
  names.insert(names.end(), other_passes.begin(), other_passes.end());
  checkSkippedPasses(options.skip, names);
  // Verify the input too. Otherwise the error for an invalid input would name the first pass.
  if (options.verify_each) verify(fusion);
  const PassDriver<Fusion> driver(options, sameGraph, print);
  Fusion result = fusion;
  for (const Pass& pass : kPasses) {
    const auto run = [&](Fusion input) { return pass.run(std::move(input), job_size); };
    result = driver.run(pass.name, std::move(result), run, verify);
  }
  HEDDLE_USER_CHECK(result.symbolic_sizes.empty(),
                    "size {}? was not decided: do not skip the pass concretizeSizes",
                    result.symbolic_sizes.front());
  if (options.verify) verify(result);
  checkRequiredOrders(result);
  return result;
}

}  // namespace heddle
