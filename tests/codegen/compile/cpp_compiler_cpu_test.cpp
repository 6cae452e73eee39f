#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "codegen/compile/cpp_compiler.h"
#include "codegen/compile/image_cache.h"
#include "codegen/emit/plan_kernel.h"
#include "ir/composite/composite.h"
#include "tests/codegen/kernel_runner.h"

namespace heddle::codegen::cpp_compiler_cpu_test {
namespace {

using testing::Buffer;
using testing::CpuKernels;

TEST(CppCompiler, ErrorsShowLogAndNumberedSource) {
  KernelSource source{Target::Cpp, "extern \"C\" void k() {\n  no_such_name();\n}\n"};
  try {
    CpuKernels::shared().compiler()->compile(source);
    FAIL() << "no error";
  } catch (const UserError& e) {
    std::string what = e.what();
    EXPECT_NE(what.find("was not declared"), std::string::npos) << what;
    EXPECT_NE(what.find(" |   no_such_name();"), std::string::npos) << what;
  }
}

// Plans relu(x) of a dtype. The sources for two dtypes differ, so their entry names must differ
// too.
KernelPlan reluPlan(DType dtype) {
  FusionBuilder b("relu");
  b.output(b.pointwise("relu", {b.input("x", dtype, {Size::symbol("n")})}));
  const TensorDesc d = denseDesc(dtype, {1000});
  return planKernel(std::move(b).build(), {d}, {d}, Target::Cpp);
}

TEST(CppCompiler, KernelsCompileTogetherAndErrorsNameOneKernel) {
  TempFolder folder;
  ImageCache cache(folder.path());
  const KernelCompiler& compiler = *CpuKernels::shared().compiler();
  const KernelPlan single = reluPlan(DType::F32);
  const KernelPlan wide = reluPlan(DType::F64);
  const auto images = cache.get({&single.source, &wide.source}, compiler);
  EXPECT_EQ(images[0]->library, images[1]->library) << "one run of the compiler";
  void* library = images[0]->library.get();
  EXPECT_NE(dlsym(library, single.stages[0].entry.c_str()), nullptr);
  EXPECT_NE(dlsym(library, wide.stages[0].entry.c_str()), nullptr);

  const KernelPlan good = reluPlan(DType::F16);
  const KernelSource bad{Target::Cpp, "extern \"C\" void k() {\n  no_such_name();\n}\n"};
  try {
    cache.get({&good.source, &bad}, compiler);
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(std::string(e.what()).find(good.stages[0].entry), std::string::npos) << e.what();
  }
  EXPECT_EQ(cache.compiled(), 3);
}

TEST(CppCompiler, IdentityNamesVersionFlagsAndFeatures) {
  std::string identity = CpuKernels::shared().compiler()->identity();
  EXPECT_NE(identity.find("-ffp-contract=off"), std::string::npos);
  EXPECT_NE(identity.find("__VERSION__"), std::string::npos);
  EXPECT_EQ(identity.find("fast-math "), std::string::npos);
}

TEST(CppCompiler, MissingCompilerIsReported) {
  const char* before = std::getenv("HEDDLE_CXX");
  std::string saved = before == nullptr ? "" : before;
  setenv("HEDDLE_CXX", "/no/such/compiler", 1);
  std::string why;
  EXPECT_EQ(makeCppCompiler(why), nullptr);
  EXPECT_NE(why.find("/no/such/compiler"), std::string::npos) << why;
  saved.empty() ? unsetenv("HEDDLE_CXX") : setenv("HEDDLE_CXX", saved.c_str(), 1);
}

// Returns the machine code of a kernel that computes gelu with tanh. The code contains the names of
// the functions that it calls. The simd declarations of the runtime header let the compiler call
// libmvec for the tanh of a tensor.
std::string geluImage(DType dtype) {
  FusionBuilder b("gelu");
  ValueId x = b.input("x", dtype, {Size::symbol("n")});
  b.output(gelu(b, x, GeluKind::Tanh));
  Fusion f = std::move(b).build();
  TensorDesc d = denseDesc(dtype, {1000});
  KernelPlan plan = planKernel(f, {d}, {d}, Target::Cpp);
  std::vector<std::byte> image = CpuKernels::shared().compiler()->compile(plan.source);
  return {reinterpret_cast<const char*>(image.data()), image.size()};
}

TEST(CppCompiler, F64GeluCallsVectorMath) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "libmvec is looked for on x86-64 only";
#endif
  const std::string image = geluImage(DType::F64);
  bool vector = false;
  for (const char* name : {"_ZGVbN2v_tanh", "_ZGVdN4v_tanh", "_ZGVeN8v_tanh"}) {
    vector = vector || image.find(name) != std::string::npos;
  }
  EXPECT_TRUE(vector);
}

TEST(CppCompiler, F32GeluCallsNoLibrary) {
  EXPECT_EQ(geluImage(DType::F32).find("tanhf"), std::string::npos);
}

}  // namespace
}  // namespace heddle::codegen::cpp_compiler_cpu_test
