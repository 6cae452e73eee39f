#pragma once

#include <mpi.h>

#include "ir/base/dtype.h"

namespace heddle::comm::mpi {

// The MPI type of an element. MPI has none for f16, bf16 and f8, and only moves them: those are
// types of their own of as many bytes. On the MPI thread, while MPI runs.
MPI_Datatype elementType(DType dtype);

// Gives back what elementType() has made, before MPI ends.
void freeElementTypes();

}  // namespace heddle::comm::mpi
