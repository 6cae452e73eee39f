#include "comm/mpi/element_type.h"

#include <string>
#include <utility>

#include "comm/mpi/mpi_thread.h"
#include "ir/base/check.h"

namespace heddle::comm::mpi {
namespace {

// The types that elementType() has created. One list per process suffices, because a process can
// initialise MPI only once.
std::pair<DType, MPI_Datatype> own_types[] = {{DType::F16, MPI_DATATYPE_NULL},
                                              {DType::BF16, MPI_DATATYPE_NULL},
                                              {DType::F8E4M3, MPI_DATATYPE_NULL},
                                              {DType::F8E5M2, MPI_DATATYPE_NULL}};

MPI_Datatype ownType(DType dtype) {
  for (auto& [own, type] : own_types) {
    if (own != dtype) continue;
    if (type != MPI_DATATYPE_NULL) return type;
    const std::string name = "heddle." + std::string(heddle::name(dtype));
    check("MPI_Type_contiguous",
          MPI_Type_contiguous(static_cast<int>(sizeOf(dtype)), MPI_BYTE, &type));
    check("MPI_Type_set_name", MPI_Type_set_name(type, name.c_str()));
    check("MPI_Type_commit", MPI_Type_commit(&type));
    return type;
  }
  throwInternalError(__FILE__, __LINE__, "dtype", "no type of its own");
}

}  // namespace

MPI_Datatype elementType(DType dtype) {
  switch (dtype) {
    case DType::Bool:
    case DType::U8:
      return MPI_UINT8_T;
    case DType::I8:
      return MPI_INT8_T;
    case DType::I32:
      return MPI_INT32_T;
    case DType::I64:
      return MPI_INT64_T;
    case DType::F32:
      return MPI_FLOAT;
    case DType::F64:
      return MPI_DOUBLE;
    case DType::F16:
    case DType::BF16:
    case DType::F8E4M3:
    case DType::F8E5M2:
      return ownType(dtype);
  }
  throwInternalError(__FILE__, __LINE__, "dtype", "not a dtype");
}

void freeElementTypes() {
  for (auto& [dtype, type] : own_types) {
    if (type != MPI_DATATYPE_NULL) MPI_Type_free(&type);
  }
}

}  // namespace heddle::comm::mpi
