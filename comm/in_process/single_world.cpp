#include "comm/in_process_job.h"

namespace heddle::comm {

// One thread that meets only itself.
std::unique_ptr<World> makeSingleWorld() {
  return std::move(makeHostWorldsOfThreads(1, "single").front());
}

}  // namespace heddle::comm
