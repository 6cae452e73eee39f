#include "ir/passes/concretize_meshes.h"

#include "ir/graph/verify.h"

namespace heddle {

Fusion concretizeMeshes(const Fusion& fusion, int64_t job_size) {
  checkSizeSymbols(fusion);
  Fusion result = fusion;
  for (DeviceMesh& mesh : result.meshes) concretizeMesh(mesh, job_size);
  return result;
}

}  // namespace heddle
