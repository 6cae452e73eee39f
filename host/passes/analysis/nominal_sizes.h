#pragma once

#include "host/program/pass_options.h"

namespace heddle::host {

// The sizes by which a pass chooses the fastest of several correct programs. A symbol has its value
// in PassOptions::chunk_sizes. A symbol without a value there has the default of the program, or
// 4096 if the program has no default. All ranks have the same nominal sizes.
class NominalSizes {
 public:
  NominalSizes(const Program& program, const PassOptions& options);

  double value(const Size& size) const;
  // Return the elements and the bytes of one device's block of the slot. They assume that the axes
  // divide evenly.
  double elements(const Program& program, const Slot& slot) const;
  double bytes(const Program& program, const Slot& slot) const;

 private:
  SizeBindings sizes_;
};

// Returns the number of devices across which `axis` of the slot is split.
int64_t devicesOf(const Program& program, const Slot& slot, size_t axis);
// Returns the extent of `axis` in each device's block, assuming that the axis divides evenly.
Size evenExtent(const Program& program, const Slot& slot, size_t axis);

}  // namespace heddle::host
