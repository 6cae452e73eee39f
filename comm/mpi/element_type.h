#pragma once

#include <mpi.h>

#include "ir/base/dtype.h"

namespace heddle::comm::mpi {

// Returns the MPI type of an element. MPI has no types for f16, bf16 and f8. For each of them this
// file defines an MPI type of the same number of bytes, which can only be moved. Call it on the MPI
// thread, while MPI is initialised.
MPI_Datatype elementType(DType dtype);

// Frees the types of elementType(). Call it before MPI_Finalize.
void freeElementTypes();

}  // namespace heddle::comm::mpi
