#include "ir/passes/concretize_meshes.h"

#include "ir/graph/verify.h"

namespace heddle {

Fusion concretizeMeshes(Fusion fusion, int64_t job_size) {
  checkSizeSymbols(fusion);
  for (DeviceMesh& mesh : fusion.meshes) concretizeMesh(mesh, job_size);
  return fusion;
}

}  // namespace heddle
