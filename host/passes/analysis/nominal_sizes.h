#pragma once

#include "host/program/pass_options.h"

namespace heddle::host {

// The sizes by which a pass chooses between correct programs. A symbol has its value in
// PassOptions::chunk_sizes, else the default of the program, else 4096. All ranks have equal sizes.
class NominalSizes {
 public:
  NominalSizes(const Program& program, const PassOptions& options);

  double value(const Size& size) const;
  // Return the size of one device's block of the slot, as if its axes divided evenly.
  double elements(const Program& program, const Slot& slot) const;
  double bytes(const Program& program, const Slot& slot) const;

 private:
  SizeBindings sizes_;
};

// Return the number of devices that share `axis` of the slot, and the extent of each device's block
// if it divides evenly.
int64_t devicesOf(const Program& program, const Slot& slot, size_t axis);
Size evenExtent(const Program& program, const Slot& slot, size_t axis);

}  // namespace heddle::host
