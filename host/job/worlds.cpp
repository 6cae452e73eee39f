#include "comm/in_process/worlds.h"

#include <cstdlib>

#include "host/device/load_module.h"
#include "host/job/worlds.h"

namespace heddle::host {

bool startedByMpi() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMI_SIZE") != nullptr;
}

std::vector<std::unique_ptr<comm::World>> makeInProcessWorldsFor(DeviceKind kind, int size) {
  if (kind == DeviceKind::Cuda) return cudaModule().makeInProcessWorlds(size, 0);
  return comm::makeInProcessWorlds(size);
}

std::unique_ptr<comm::World> makeJobWorld(DeviceKind kind, int device_ordinal) {
  if (!startedByMpi()) return comm::makeSingleWorld();
  std::unique_ptr<comm::World> world = mpiModule().makeWorld();
  if (kind != DeviceKind::Cuda) return world;
  return makeNcclWorld(std::move(world), device_ordinal);
}

std::unique_ptr<comm::World> makeNcclWorld(std::unique_ptr<comm::World> world, int device_ordinal) {
  return ncclModule().makeWorld(std::move(world), device_ordinal,
                                cudaModule().makeReduce(device_ordinal));
}

}  // namespace heddle::host
