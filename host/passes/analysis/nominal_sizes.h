#pragma once

#include "host/program/pass_options.h"

namespace heddle::host {

// Sizes by which a pass chooses between right programs: those of the options, the program's
// defaults for symbols without, and a nominal extent for the rest. Equal on every rank.
class NominalSizes {
 public:
  NominalSizes(const Program& program, const PassOptions& options);

  double value(const Size& size) const;
  // Of one device's block of the slot, as if its axes divided evenly.
  double elements(const Program& program, const Slot& slot) const;
  double bytes(const Program& program, const Slot& slot) const;

 private:
  SizeBindings sizes_;
};

// Devices over which `axis` of the slot is spread, and what each has of it when that is even.
int64_t devicesOf(const Program& program, const Slot& slot, size_t axis);
Size evenExtent(const Program& program, const Slot& slot, size_t axis);

}  // namespace heddle::host
