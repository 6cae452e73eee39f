#include "codegen/compile/image_cache.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <thread>

#include "codegen/compile/child_process.h"
#include "codegen/compile/image_files.h"
#include "codegen/kernel.h"
#include "ir/base/check.h"
#include "tests/codegen/compile/small_elf.h"

namespace heddle::codegen::image_cache_test {
namespace {

namespace fs = std::filesystem;
using heddle::testing::smallElf;

// "Compiles" a source to its own text, and counts the calls.
class FakeCompiler : public KernelCompiler {
 public:
  explicit FakeCompiler(std::string identity = "fake 1") : identity_(std::move(identity)) {}
  Target target() const override { return Target::Cuda; }
  std::string identity() const override { return identity_; }
  std::vector<std::byte> compile(const KernelSource& source) const override {
    ++count;
    if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (source.text.find("bad") != std::string::npos) userError("does not compile");
    const auto* bytes = reinterpret_cast<const std::byte*>(source.text.data());
    return {bytes, bytes + source.text.size()};
  }
  size_t mostAtOnce() const override { return most; }
  mutable std::atomic<int> count{0};
  bool slow = false;
  size_t most = 1;

 private:
  std::string identity_;
};

std::string textOf(const KernelImage& image) {
  return {reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()};
}

KernelSource source(const std::string& text) { return {Target::Cuda, text}; }

TEST(ImageCache, ImagesComeFromMemoryThenDisk) {
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

TEST(ImageCache, UnusedImagesLeaveMemory) {
  TempFolder folder;
  FakeCompiler compiler;
  const std::string large(1000, 'x');
  const auto bytesOf = [&](const std::string& text) {
    return static_cast<int64_t>(text.size() + ImageKey(source(text), compiler).text.size());
  };
  // There is room for two of the four images.
  ImageCache cache(folder.path(), 1 << 30, bytesOf("a" + large) * 5 / 2);
  const auto get = [&](const char* name) { return cache.get(source(name + large), compiler); };
  const std::shared_ptr<const KernelImage> a = get("a");
  const std::weak_ptr<const KernelImage> b = get("b");
  const std::weak_ptr<const KernelImage> c = get("c");
  EXPECT_TRUE(b.expired()) << "b was not used for the longest time, except a";
  EXPECT_FALSE(c.expired());
  EXPECT_EQ(get("a"), a) << "a caller holds a";
  get("d");
  EXPECT_TRUE(c.expired());
  get("b");
  EXPECT_EQ(compiler.count, 4) << "b came from the folder again";
}

TEST(ImageCache, ImagesOfSeveralSourcesLeaveMemory) {
  TempFolder folder;
  FakeCompiler compiler;
  compiler.most = 16;
  ImageCache cache(folder.path(), 1 << 30, 1);
  std::deque<KernelSource> sources;
  std::vector<const KernelSource*> pointers;
  for (int i = 0; i < 64; ++i) {
    pointers.push_back(&sources.emplace_back(source(fmt::format("{} ", i))));
  }
  std::vector<std::weak_ptr<const KernelImage>> images;
  {
    const auto held = cache.get(pointers, compiler);
    const std::set<std::shared_ptr<const KernelImage>> different(held.begin(), held.end());
    EXPECT_LT(different.size(), 64U);
    images.assign(held.begin(), held.end());
  }
  cache.get(source("one more"), compiler);
  for (const auto& image : images) EXPECT_TRUE(image.expired());
}

// Returns the text of the UserError that the cache throws if the compiler returns `image` for
// kernel k, or "" if it throws none.
std::string refusal(const std::string& image, const FakeCompiler& compiler,
                    const std::string& folder) {
  KernelSource wanted = source(image);
  wanted.entries = {"k"};
  try {
    ImageCache(folder).get(wanted, compiler);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(ImageCache, UnusableImageOfACompilerIsReportedAndNotStored) {
  TempFolder folder;
  FakeCompiler compiler;
  const std::string whole = smallElf({".text.k"});
  const auto reason = [](const std::string& image, const std::string& why) {
    return fmt::format(
        "the compiler reported success, but the image of {} bytes cannot be used: {}", image.size(),
        why);
  };
  const std::string garbage = "garbage instead of an image";
  const std::string cut = whole.substr(0, whole.size() - 1);
  const std::string other = smallElf({".text.other"});
  for (int times = 0; times < 2; ++times) {  // the folder does not store unusable images
    EXPECT_EQ(refusal("", compiler, folder.path()), reason("", "it has 0 bytes"));
    EXPECT_EQ(refusal(garbage, compiler, folder.path()),
              reason(garbage, "it does not begin like an ELF file of 64 bits"));
    EXPECT_EQ(
        refusal(cut, compiler, folder.path()),
        reason(cut, fmt::format("its end is missing: it has {} bytes, and its headers name {}",
                                cut.size(), whole.size())));
    EXPECT_EQ(refusal(other, compiler, folder.path()), reason(other, "it has no kernel k"));
  }
  EXPECT_EQ(compiler.count, 8);
  EXPECT_TRUE(!fs::exists(folder.path()) || fs::is_empty(folder.path()));
  EXPECT_EQ(refusal(whole, compiler, folder.path()), "");
}

// Each case damages the file of an image, as a disk or another program could. A new image replaces
// the damaged one.
TEST(ImageCache, DamagedImageInTheFolderIsReported) {
  FakeCompiler compiler;
  KernelSource wanted = source(smallElf({".text.k"}));
  wanted.entries = {"k"};
  const auto cutHalf = [](const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); };
  const auto overwrite = [](const fs::path& file) {
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(10).put('x');
  };
  const std::vector<std::function<void(const fs::path&)>> damages = {cutHalf, overwrite};
  for (const auto& damage : damages) {
    TempFolder folder;
    ImageCache(folder.path()).get(wanted, compiler);
    for (const fs::directory_entry& file : fs::directory_iterator(folder.path())) {
      if (file.path().extension() == ".cubin") damage(file.path());
    }
    ::testing::internal::CaptureStderr();
    ImageCache damaged(folder.path());
    EXPECT_EQ(textOf(*damaged.get(wanted, compiler)), wanted.text);
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(damaged.compiled(), 1);
    EXPECT_NE(said.find(".cubin: its "), std::string::npos) << said;
    EXPECT_NE(said.find(" bytes are not the bytes that were stored with its key"),
              std::string::npos)
        << said;
    ImageCache repaired(folder.path());
    repaired.get(wanted, compiler);
    EXPECT_EQ(repaired.compiled(), 0);
  }
}

TEST(ImageCache, CompilerIdentityIsPartOfTheKey) {
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

TEST(ImageCache, UnwritableFolderIsReportedOnce) {
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

TEST(ImageCache, OldestFilesAreDeletedWhenFull) {
  TempFolder folder;
  FakeCompiler compiler;
  std::string big(100'000, 'x');
  {
    ImageCache cache(folder.path(), 1 << 30);
    for (char c : std::string("abcd")) cache.get(source(big + c), compiler);
  }
  const std::string hash(64, 'a');
  const std::string foreign[] = {"notes.tmp", "library.so", hash + "b.so", "X" + hash + ".key"};
  for (const std::string& name : foreign) std::ofstream(folder.path() + "/" + name) << name;
  std::ofstream(folder.path() + "/" + hash + ".key.1.0.tmp") << "left by a killed process";
  auto age = fs::file_time_type::clock::now();
  for (const fs::directory_entry& file : fs::directory_iterator(folder.path())) {
    fs::last_write_time(file.path(), age - std::chrono::hours(2));
  }
  // The limit fits one entry, because key and image together take about 200 KB.
  ImageCache small(folder.path(), 350'000);
  small.get(source(big + "e"), compiler);
  uintmax_t bytes = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(folder.path())) {
    bytes += file.file_size();
  }
  EXPECT_LE(bytes, 350'000u);
  for (const std::string& name : foreign) EXPECT_TRUE(fs::exists(folder.path() + "/" + name));
  EXPECT_FALSE(fs::exists(folder.path() + "/" + hash + ".key.1.0.tmp"));
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

TEST(ImageCache, FailuresAreNotCached) {
  TempFolder folder;
  FakeCompiler compiler;
  ImageCache cache(folder.path());
  EXPECT_THROW(cache.get(source("bad"), compiler), UserError);
  EXPECT_THROW(cache.get(source("bad"), compiler), UserError);
  EXPECT_EQ(compiler.count, 2);
}

std::vector<std::string> textsOf(ImageCache& cache, const std::vector<KernelSource>& sources,
                                 const KernelCompiler& compiler) {
  std::vector<const KernelSource*> asked;
  for (const KernelSource& one : sources) asked.push_back(&one);
  std::vector<std::string> texts;
  for (const auto& image : cache.get(asked, compiler)) texts.push_back(textOf(*image));
  return texts;
}

TEST(ImageCache, MissingImagesAreCompiledTogether) {
  TempFolder folder;
  FakeCompiler compiler;
  compiler.most = 6;
  ImageCache cache(folder.path());
  cache.get(source("b"), compiler);
  const std::vector<KernelSource> sources = {source("a"), source("b"), source("c"), source("a")};
  EXPECT_EQ(textsOf(cache, sources, compiler), (std::vector<std::string>{"ac", "b", "ac", "ac"}));
  EXPECT_EQ(compiler.count, 2);
  EXPECT_EQ(cache.compiled(), 3);
  // Each image has its own file on disk.
  ImageCache later(folder.path());
  EXPECT_EQ(textOf(*later.get(source("c"), compiler)), "ac");
  EXPECT_EQ(textsOf(later, {source("d"), source("a")}, compiler),
            (std::vector<std::string>{"d", "ac"}));
  EXPECT_EQ(later.compiled(), 1);
}

// The cache compiles kernels in batches. A batch has at most as many kernels as the compiler
// allows. It has fewer if more compilers could then run at the same time.
TEST(ImageCache, BatchesStayWithinTheLimitOfTheCompiler) {
  TempFolder folder;
  FakeCompiler compiler;
  compiler.most = 3;
  ImageCache cache(folder.path());
  std::vector<KernelSource> sources;
  for (char c = 'a'; c < 'k'; ++c) sources.push_back(source(std::string(1, c)));
  const std::vector<std::string> texts = textsOf(cache, sources, compiler);
  EXPECT_GE(compiler.count, 4);
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_LE(texts[i].size(), 3u);
    EXPECT_NE(texts[i].find(sources[i].text), std::string::npos);
  }
}

TEST(ImageCache, FailedKernelDoesNotAffectOthers) {
  TempFolder folder;
  FakeCompiler compiler;
  compiler.most = 9;
  ImageCache cache(folder.path());
  EXPECT_THROW(textsOf(cache, {source("a"), source("bad"), source("c")}, compiler), UserError);
  EXPECT_EQ(cache.compiled(), 2);
  EXPECT_EQ(textsOf(cache, {source("a"), source("c")}, compiler),
            (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(cache.compiled(), 2);
}

TEST(ImageCache, ThreadsWithOverlappingBatchesDoNotDeadlock) {
  TempFolder folder;
  FakeCompiler compiler;
  compiler.slow = true;
  compiler.most = 6;
  ImageCache cache(folder.path());
  const std::vector<std::string> names = {"a", "b", "c", "d"};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const std::vector<KernelSource> mine = {source(names[i % 4]), source(names[(i + 1) % 4])};
      const std::vector<std::string> texts = textsOf(cache, mine, compiler);
      for (size_t k = 0; k < 2; ++k) EXPECT_NE(texts[k].find(mine[k].text), std::string::npos);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache.compiled(), 4);
}

}  // namespace
}  // namespace heddle::codegen::image_cache_test
