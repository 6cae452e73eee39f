#include "codegen/emit/kernel_text.h"
#include "ir/base/check.h"

namespace heddle::codegen {
namespace {

// Returns the declaration of the argument struct (codegen/families/shared_launch.h).
std::string argumentsText(const SharedKernel& kernel) {
  return fmt::format(
      "struct Args_{0} {{\n"
      "  alignas(8) long long parts;\n"
      "  long long begin[{1}];\n"
      "  long long offset[{1}];\n"
      "  alignas(8) int first[{2}];\n"
      "  alignas(8) unsigned char table[{3}];\n"
      "}};\nstatic_assert(sizeof(Args_{0}) == {4}, \"layout\");\n",
      kernel.entry, kernel.bodies.size(), kernel.most_parts, kernel.table_bytes, kernel.bytes);
}

// Writes an if-else chain that calls the body (a function) to which the variable `part` belongs.
// `range` is the text of the last two arguments of the call. Cuda: the number of the block within
// the part, and the number of blocks of the part. Cpp: the first tile to compute and the tile after
// the last one, both counted from the start of the part.
void writeCalls(TextWriter& out, const SharedKernel& kernel, bool by_pointer, const char* range) {
  for (size_t b = 0; b < kernel.bodies.size(); ++b) {
    const std::string& body = kernel.bodies[b];
    const std::string arguments = fmt::format(
        "((const Args_{}*)(args.table + args.offset[{}]))[part - args.begin[{}]]", body, b, b);
    const bool is_last = b + 1 == kernel.bodies.size();
    out.line(fmt::format("{}{}{}({}{}, {});", b > 0 ? "else " : "",
                         is_last ? "" : fmt::format("if (part < args.begin[{}]) ", b + 1), body,
                         by_pointer ? "&" : "", arguments, range));
  }
}

}  // namespace

std::string emitSharedCuda(const SharedKernel& kernel) {
  TextWriter out;
  openCudaEntry(out, kernel.entry, std::to_string(kernel.block));
  out.line("const int part = hd::partOf(args.first, (int)args.parts, hd::block());");
  out.line("const long long block = hd::block() - args.first[part];");
  out.line("const long long blocks = args.first[part + 1] - args.first[part];");
  writeCalls(out, kernel, false, "block, blocks");
  out.close();
  return argumentsText(kernel) + out.take();
}

std::string emitSharedCpp(const SharedKernel& kernel) {
  TextWriter out;
  out.open(fmt::format(
      "extern \"C\" void {}(const void* raw, long long tile_begin, long long tile_end) {{",
      kernel.entry));
  out.line(fmt::format("const Args_{0}& args = *(const Args_{0}*)raw;", kernel.entry));
  out.line("int part = hd::partOf(args.first, (int)args.parts, tile_begin);");
  out.open("for (; tile_begin < tile_end; ++part) {");
  out.line("const long long begin = tile_begin - args.first[part];");
  out.line("tile_begin = hd::smaller(tile_end, args.first[part + 1]);");
  out.line("const long long end = tile_begin - args.first[part];");
  writeCalls(out, kernel, true, "begin, end");
  out.close();
  out.close();
  return argumentsText(kernel) + out.take();
}

}  // namespace heddle::codegen
