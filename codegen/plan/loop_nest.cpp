#include "codegen/plan/loop_nest.h"

namespace heddle::codegen {

LoopNest buildLoopNest(const NestRequest& request) {
  const Computation& computation = request.computation;
  LoopNest nest{buildFrame({request.entry,
                            request.schedule,
                            request.space,
                            {&computation.loop, &computation.finish},
                            computation.accumulators,
                            request.reduced_count}),
                request.schedule, computation, request.partials};
  return nest;
}

}  // namespace heddle::codegen
