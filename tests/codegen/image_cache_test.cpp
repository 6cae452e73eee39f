#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "codegen/kernel.h"
#include "codegen/process.h"
#include "ir/error.h"

namespace heddle::codegen {
namespace {

namespace fs = std::filesystem;

// "Compiles" to the text itself, and counts.
class FakeCompiler : public KernelCompiler {
 public:
  explicit FakeCompiler(std::string identity = "fake 1") : identity_(std::move(identity)) {}
  Target target() const override { return Target::Cuda; }
  std::string identity() const override { return identity_; }
  std::vector<std::byte> compile(const KernelSource& source) const override {
    ++count;
    if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (source.text == "bad") userError("does not compile");
    const auto* bytes = reinterpret_cast<const std::byte*>(source.text.data());
    return {bytes, bytes + source.text.size()};
  }
  mutable std::atomic<int> count{0};
  bool slow = false;

 private:
  std::string identity_;
};

std::string textOf(const KernelImage& image) {
  return {reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()};
}

KernelSource source(const std::string& text) { return {Target::Cuda, text}; }

TEST(ImageCache, MemoryThenDisk) {
  TempFolder folder;
  FakeCompiler compiler;
  ImageCache first(folder.path());
  EXPECT_EQ(textOf(*first.get(source("a"), compiler)), "a");
  EXPECT_EQ(first.get(source("a"), compiler), first.get(source("a"), compiler));
  EXPECT_EQ(first.compiled(), 1);
  ImageCache second(folder.path());
  EXPECT_EQ(textOf(*second.get(source("a"), compiler)), "a");
  EXPECT_EQ(second.compiled(), 0);
  EXPECT_EQ(compiler.count, 1);
}

TEST(ImageCache, AnotherCompilerIsAnotherKey) {
  TempFolder folder;
  FakeCompiler one("fake 1"), two("fake 2");
  ImageCache cache(folder.path());
  cache.get(source("a"), one);
  cache.get(source("a"), two);
  EXPECT_EQ(cache.compiled(), 2);
}

TEST(ImageCache, DamagedFilesAreReplaced) {
  TempFolder folder;
  FakeCompiler compiler;
  ImageCache(folder.path()).get(source("kernel"), compiler);
  for (const char* extension : {".cubin", ".key"}) {
    for (const fs::directory_entry& file : fs::directory_iterator(folder.path())) {
      if (file.path().extension() == extension) std::ofstream(file.path()) << "kernxl";
    }
    ImageCache damaged(folder.path());
    EXPECT_EQ(textOf(*damaged.get(source("kernel"), compiler)), "kernel");
    EXPECT_EQ(damaged.compiled(), 1) << extension;
    ImageCache repaired(folder.path());
    repaired.get(source("kernel"), compiler);
    EXPECT_EQ(repaired.compiled(), 0) << extension;
  }
}

TEST(ImageCache, FolderThatCannotBeWritten) {
  TempFolder folder;
  std::ofstream(folder.path() + "/file") << "x";
  ImageCache cache(folder.path() + "/file/cache");
  FakeCompiler compiler;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(textOf(*cache.get(source("a"), compiler)), "a");
  EXPECT_EQ(textOf(*cache.get(source("b"), compiler)), "b");
  cache.get(source("a"), compiler);
  std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(cache.compiled(), 2);
  EXPECT_NE(said.find("kernel cache"), std::string::npos);
  EXPECT_EQ(said.find("kernel cache"), said.rfind("kernel cache")) << "said once";
}

TEST(ImageCache, TheOldestGoWhenItIsFull) {
  TempFolder folder;
  FakeCompiler compiler;
  std::string big(100'000, 'x');
  {
    ImageCache cache(folder.path(), 1 << 30);
    for (char c : std::string("abcd")) cache.get(source(big + c), compiler);
  }
  auto age = fs::file_time_type::clock::now();
  for (const fs::directory_entry& file : fs::directory_iterator(folder.path())) {
    fs::last_write_time(file.path(), age - std::chrono::hours(1));
  }
  // The bound holds one entry: key and image are some 200 KB.
  ImageCache small(folder.path(), 350'000);
  small.get(source(big + "e"), compiler);
  uintmax_t bytes = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(folder.path())) {
    bytes += file.file_size();
  }
  EXPECT_LE(bytes, 350'000u);
  ImageCache again(folder.path());
  again.get(source(big + "e"), compiler);
  EXPECT_EQ(again.compiled(), 0) << "the newest stays";
}

TEST(ImageCache, ManyThreadsCompileOnce) {
  TempFolder folder;
  FakeCompiler compiler;
  compiler.slow = true;
  ImageCache cache(folder.path());
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(textOf(*cache.get(source("a"), compiler)), "a"); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(compiler.count, 1);
}

TEST(ImageCache, AFailureIsNotRemembered) {
  TempFolder folder;
  FakeCompiler compiler;
  ImageCache cache(folder.path());
  EXPECT_THROW(cache.get(source("bad"), compiler), UserError);
  EXPECT_THROW(cache.get(source("bad"), compiler), UserError);
  EXPECT_EQ(compiler.count, 2);
}

TEST(Process, OutputAndExitCode) {
  ProcessResult result = runProcess({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_TRUE(result.started);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.output, "out\nerr\n");
  EXPECT_FALSE(runProcess({"/no/such/program"}).started);
}

}  // namespace
}  // namespace heddle::codegen
