#pragma once

#include <optional>

#include "codegen/families/rows/bundle_elements.h"
#include "codegen/families/rows/row_candidates.h"

namespace heddle::codegen {

// The part of chooseBundles() (codegen/families/rows/bundles.h) for Cuda. A block holds each
// bundle, or the blocks of a cluster share it (RowLayout::cluster). `choice` is nullptr or has the
// family "rows".
std::optional<RowCandidate> chooseCudaBundles(const Space& rows, const BundleElements& elements,
                                              const RowDemands& demands,
                                              const KernelChoice* choice);

}  // namespace heddle::codegen
