#pragma once

#include <mpi.h>

#include "ir/base/dtype.h"

namespace heddle::comm::mpi {

// Returns the MPI type of an element. MPI has no types for f16, bf16 and f8. For each of these
// types, the first call creates an MPI type of the same number of bytes, which MPI can move but not
// reduce. Call elementType() on the MPI thread (comm/mpi/mpi_thread.h), while MPI is initialised.
MPI_Datatype elementType(DType dtype);

// Frees the types that elementType() has created. Call it on the MPI thread, before MPI_Finalize.
void freeElementTypes();

}  // namespace heddle::comm::mpi
