#include "comm/in_process/job.h"
#include "comm/in_process/worlds.h"

namespace heddle::comm {

std::unique_ptr<World> makeSingleWorld() {
  return std::move(makeHostWorldsOfThreads(1, "single").front());
}

}  // namespace heddle::comm
