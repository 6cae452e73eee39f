#pragma once

#include "host/program/program.h"

namespace heddle::host {

// Inserts a Free for every buffer that the program allocates and does not return, except for the
// buffers that the author must free (see below). Run this after insertSync(). Otherwise
// insertSync() would also order streams where only a Free needs the order.
//   A buffer that is allocated at the top level is freed on stream 0. The Free is at the first
//     position after the last use at which stream 0 is ordered after all uses of the buffer. If
//     there is no such position, the Free is at the end of the program, and verify() reports the
//     missing order.
//   A buffer that the body of a loop or branch allocates is freed in this body, on stream 0. The
//     Free follows the last use, or is at the end of the body if the buffer has views.
//
// The author of the program must free the following buffers:
//   buffers that a Free of the program already names
//   buffers allocated at the top level and used by an instruction that the author has ordered
//     (Item::opaque in host/passes/analysis/buffer_accesses.h)
//   buffers allocated in the body of a loop or branch, if a posted operation or an instruction on a
//     stream other than stream 0 accesses them, or if they are also used outside of this body
//   buffers whose slot is redefined before they could be freed, because a Free names the slot
Program insertFrees(Program program);

}  // namespace heddle::host
