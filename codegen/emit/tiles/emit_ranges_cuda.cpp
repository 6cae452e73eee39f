#include "codegen/emit/kernel_text.h"
#include "codegen/emit/tiles/emit_loop_combine.h"
#include "ir/base/check.h"

namespace heddle::codegen {

// The blocks of a group have the same first coordinate in the grid, and `splits` different second
// coordinates. They share one counter. The first barrier makes all threads of the block store their
// partial results before the block counts its arrival. The second barrier makes all threads wait
// until it is known whether the block is the last one of its group.
std::string emitCudaRanges(const std::string& entry, const TileProgram& first,
                           const TileProgram& second) {
  const std::string& first_entry = first.frame.entry;
  const std::string& second_entry = second.frame.entry;
  HEDDLE_CHECK(first.items->block == second.items->block &&
                   first.items->reduce_threads == second.items->reduce_threads,
               "the halves of {} have different blocks", entry);
  TextWriter out;
  LoopCombiner combiner(out, first);
  const char* scratch = combiner.usesScratch() ? ", scratch" : "";
  out.open(fmt::format("struct Args_{} {{", entry));
  out.line(fmt::format("Args_{} first;", first_entry));
  out.line(fmt::format("Args_{} second;", second_entry));
  out.line("alignas(8) unsigned* counters;");
  out.close("};");
  out.line(fmt::format("static_assert(sizeof(Args_{}) == {}, \"layout\");", entry,
                       first.frame.args.bytes() + second.frame.args.bytes() + sizeof(void*)));
  openCudaEntry(out, entry, std::to_string(first.items->block));
  combiner.declareScratch();
  out.line("__shared__ hd::SharedBytes<4> last_bytes;");
  out.line("const hd::SharedArray<int> is_last(last_bytes);");
  out.line(fmt::format("{}(args.first{});", first_entry, scratch));
  out.line("hd::barrier();");
  out.line(
      "if (hd::thread() == 0) is_last[0] = hd::arriveLast(args.counters + hd::block(), "
      "(unsigned)args.first.splits);");
  out.line("hd::barrier();");
  out.line(fmt::format("if (is_last[0]) {}(args.second{});", second_entry, scratch));
  out.close();
  return out.take();
}

}  // namespace heddle::codegen
