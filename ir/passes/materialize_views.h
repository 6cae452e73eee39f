#pragma once

#include "ir/graph/fusion.h"

namespace heddle {

// Afterwards every reshape reads a value that lies row-major, so that it is a view: where it did
// not (a permuted or cut-out value, a hinted or observed order), a `set` %name_packed copies it
// first. Here, last, because hints that communication gave are final.
Fusion materializeViews(const Fusion& fusion);

}  // namespace heddle
