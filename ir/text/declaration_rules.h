#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "ir/text/text_pieces.h"
#include "ir/types/mesh.h"
#include "ir/types/sharding.h"
#include "ir/types/tensor.h"

namespace heddle {

// Rules for meshes and types that a user declares. The parsers of the text form and
// host::ProgramBuilder (host/builder/program_builder.h) share them, so both report an error in the
// same words. MeshAxisUse::use() and the functions with a name that ends with Violation return ""
// if the declaration keeps the rule. Otherwise they return the text of the error, without a
// position. Exception: inputOrderViolation() always returns an error.

// Checks whether `axis` may follow the axes that the mesh already has.
std::string meshAxisViolation(const DeviceMesh& mesh, MeshAxis axis);
std::string meshSizeViolation(int64_t size);  // checks the size of one axis
// Checks that at most one axis takes its size from the job.
std::string jobAxesViolation(const DeviceMesh& mesh);
std::string meshDevicesViolation(const DeviceMesh& mesh);
// Checks the list of ranks that the user has written for a mesh. An empty list is an error.
std::string meshRanksViolation(const DeviceMesh& mesh);
// Checks whether one more mesh may be declared after `meshes`.
std::string meshCountViolation(const Meshes& meshes);
std::string meshNameViolation(const Meshes& meshes, const std::string& name);
// Checks a mesh that is declared after `meshes` with all functions above. A mesh with an empty list
// of ranks counts as one without a list.
std::string meshViolation(const Meshes& meshes, const DeviceMesh& mesh);

std::string extentViolation(const IterDomain& axis);
std::string orderViolation(const AxisOrder& order, size_t rank);
std::string contiguousViolation(size_t entries, size_t rank);
std::string chunksViolation(int64_t chunks);  // checks the chunks of a Sharding::StreamSplit
// Checks an axis of a tensor with `rank` axes. A negative axis counts from the end.
std::string logicalAxisViolation(int64_t axis, size_t rank);
inline const char* const kContiguousOfValue = "contiguous describes inputs only";
// Returns the error for an input with `needed order=` or `hinted order=`, which no input may have.
// `prefix` is the word before "order=".
std::string inputOrderViolation(const std::string& prefix);

// Checks that a sharding uses only axes of the mesh, and each of them at most once. Call use() for
// each mesh axis in the sharding.
class MeshAxisUse {
 public:
  explicit MeshAxisUse(const DeviceMesh& mesh) : mesh_(mesh) {}
  std::string use(MeshAxis axis);

 private:
  const DeviceMesh& mesh_;
  std::set<MeshAxis> used_;
};

// Checks a tensor type with its sharding and its layout.
std::string typeViolation(const TensorView& tensor, const Meshes& meshes, OrderOf of);

// Checks the default value of a scalar of this dtype.
std::string defaultViolation(DType dtype, const Scalar& value);
// Returns the default value as it is stored: as a double if the dtype is a float type. Requires
// that defaultViolation() is "".
Scalar storedDefault(DType dtype, const Scalar& value);

}  // namespace heddle
