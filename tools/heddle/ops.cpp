#include <cstdio>

#include "ir/text/op_listing.h"
#include "tools/heddle/options.h"

namespace heddle::tools {

int opsCommand(const Options& options) {
  std::fputs((options.markdown ? opsMarkdown() : listOps()).c_str(), stdout);
  return 0;
}

}  // namespace heddle::tools
