// Tests files that other users wrote, damaged or endless files, and a broken environment. The
// command must not run foreign code and must not hang, and its message must name the true reason.
#include <sys/stat.h>

#include <string>

#include "tests/sanitized.h"
#include "tests/tools/cli.h"

namespace heddle::tools::main_hostile_files_cpu_test {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kOtherUser = 12345;

class MainHostileFiles : public Cli {
 protected:
  std::string script(const std::string& name, const std::string& body) {
    const std::string path = write(name, "#!/bin/sh\n" + body);
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  std::string cache(const std::string& name = "cache") { return (folder_ / name).string(); }
  void expectRight(const CliResult& result) {
    EXPECT_EQ(result.code, 0) << result.text;
    EXPECT_NE(result.text.find("right in"), std::string::npos) << result.text;
  }
  const std::string run_ = "run examples/softmax.fusion --device cpu --set rows=3 --check=full";
};

// Other users can write to the folder of the cache. Kernels in it must not be used.
TEST_F(MainHostileFiles, CachesThatOthersCanWriteAreNotUsed) {
  expectRight(heddle(run_, "HEDDLE_CACHE_DIR=" + cache()));
  const auto count = [&] {
    return std::distance(fs::directory_iterator(cache()), fs::directory_iterator());
  };
  const auto files = count();
  const auto expectRefused = [&](const std::string& why) {
    const CliResult result = heddle(run_, "HEDDLE_CACHE_DIR=" + cache());
    expectRight(result);
    const size_t at =
        result.text.find("heddle: the kernel cache " + cache() + " is not used: " + why);
    EXPECT_NE(at, std::string::npos) << result.text;
    EXPECT_EQ(result.text.find("is not used", at + cache().size() + 50), std::string::npos)
        << "once";
    EXPECT_EQ(count(), files);
  };
  ASSERT_EQ(chmod(cache().c_str(), 0777), 0);
  expectRefused("other users may write to it (mode 0777)");
  ASSERT_EQ(chmod(cache().c_str(), 0700), 0);
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  ASSERT_EQ(chown(cache().c_str(), kOtherUser, kOtherUser), 0);
  expectRefused("it belongs to user 12345");
}

TEST_F(MainHostileFiles, DefaultFolderOfAnotherUserIsNotUsed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const std::string taken = (folder_ / ("heddle-cache-" + std::to_string(geteuid()))).string();
  fs::create_directory(taken);
  ASSERT_EQ(chown(taken.c_str(), kOtherUser, kOtherUser), 0);
  const CliResult result =
      heddle(run_, "env -u HOME -u XDG_CACHE_HOME -u HEDDLE_CACHE_DIR TMPDIR=" + folder_.string());
  expectRight(result);
  EXPECT_NE(result.text.find(taken + " is not used: it belongs to user"), std::string::npos)
      << result.text;
}

// A file that another user wrote, or that is no regular file, is compiled again.
TEST_F(MainHostileFiles, ForeignCacheFilesAreReplaced) {
  const std::string environment = "HEDDLE_CACHE_DIR=" + cache();
  const auto replaceAll = [&](const std::string& extension, const auto& replace) {
    expectRight(heddle(run_, environment));
    for (const fs::directory_entry& file : fs::directory_iterator(cache())) {
      if (file.path().extension() == extension) replace(file.path().string());
    }
    expectRight(heddle(run_, environment));
  };
  for (const char* extension : {".so", ".key"}) {
    replaceAll(extension, [](const std::string& file) {
      fs::remove(file);
      ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
    });
    replaceAll(extension, [](const std::string& file) {
      fs::remove(file);
      fs::create_symlink("/dev/zero", file);
    });
    if (geteuid() == 0) {
      replaceAll(extension, [](const std::string& file) {
        ASSERT_EQ(chown(file.c_str(), kOtherUser, kOtherUser), 0);
      });
    }
    replaceAll(extension, [](const std::string& file) {
      fs::remove(file);
      fs::create_directory(file);
    });
    fs::remove_all(cache());
  }
}

TEST_F(MainHostileFiles, OnlyRegularInputFilesAreRead) {
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expectError(run_ + " --input x=" + pipe, "cannot read the file: it is a named pipe");
  expectError(run_ + " --input x=/dev/zero", "cannot read the file: it is a device");
  for (const std::string command : {"run", "dump", "verify"}) {
    expectError(command + " " + pipe, pipe + ": cannot read the file: it is a named pipe");
    expectError(command + " /dev/zero", "/dev/zero: cannot read the file: it is a device");
  }
  const CliResult piped = heddle("verify /dev/stdin < examples/softmax.fusion");
  EXPECT_EQ(piped.code, 0) << piped.text;
  const CliResult through = heddle("verify /dev/stdin", "cat examples/softmax.fusion |");
  EXPECT_EQ(through.code, 0) << through.text;
}

// Each compiler works when heddle tries it out, but then exits with 0 without a usable kernel.
TEST_F(MainHostileFiles, GarbageOfACompilerIsNotStored) {
  const std::string head =
      "case \"$*\" in *kernel.cpp*) ;; *) exec c++ \"$@\";; esac\n"
      "while [ \"$1\" != -o ]; do shift; done\n";
  const std::string valid = folder_ / "probe.cpp";
  std::ofstream(valid) << "int unrelated;\n";
  for (const auto& [body, why] :
       {std::pair<std::string, std::string>{"echo garbage >\"$2\"",
                                            "cannot be loaded: it does not begin like an ELF file"},
        {"c++ -shared -fPIC -o \"$2\" " + valid + " && truncate -s -3000 \"$2\"",
         "its end is missing"},
        {"exit 0", "wrote no kernel"},
        {": >\"$2\"", "wrote 0 bytes"},
        {"mkfifo \"$2\"", "it is a named pipe"},
        {"exec c++ -shared -fPIC -o \"$2\" " + valid, "has no kernel"}}) {
    const std::string compiler = script("compiler", head + body + "\n");
    expectError(run_, why, "HEDDLE_CXX=" + compiler + " HEDDLE_CACHE_DIR=" + cache());
    if (!fs::exists(cache())) continue;
    for (const auto& file : fs::directory_iterator(cache())) ADD_FAILURE() << why << file.path();
  }
}

TEST_F(MainHostileFiles, BrokenEnvironmentIsNamed) {
  const std::string own_cache = "HEDDLE_CACHE_DIR=" + cache() + " ";
  expectError(run_, "cannot create a temporary folder (set TMPDIR)", own_cache + "TMPDIR=/no/such");
  const std::string open_folder = (folder_ / "open").string();
  fs::create_directory(open_folder);
  ASSERT_EQ(chmod(open_folder.c_str(), 0777), 0);
  expectError(run_, "lacks the sticky bit", own_cache + "TMPDIR=" + open_folder);
  const std::string hangs = script("hangs", "exec sleep 100\n");
  expectError(run_, hangs + " was ended after 0.3 s",
              own_cache + "HEDDLE_CXX_TIMEOUT=0.3 HEDDLE_CXX=" + hangs);
  const std::string silent = script("silent", "exec >/dev/null 2>&1\nexec sleep 100\n");
  expectError(run_, silent + " was ended after 0.3 s",
              own_cache + "HEDDLE_CXX_TIMEOUT=0.3 HEDDLE_CXX=" + silent);
  expectError(run_, "HEDDLE_CXX_TIMEOUT=soon: expected", own_cache + "HEDDLE_CXX_TIMEOUT=soon");
  // The undefined behaviour sanitizer itself opens pipes, so the case with few file descriptors is
  // skipped.
  const bool sanitized = heddle::testing::kSanitized;
  if (!sanitized) {
    expectError(run_, "Too many open files", own_cache + "prlimit --nofile=5");
    // The linker needs more files than heddle.
    expectError(run_, "may use only 8 open files (ulimit -n)", own_cache + "prlimit --nofile=8");
    expectError(run_, "may use only 9000 bytes of a file (ulimit -f)",
                own_cache + "prlimit --fsize=9000");
  }
  const CliResult absent = heddle(run_, own_cache + "HEDDLE_CXX=/no/such/compiler");
  expectRight(absent);
  EXPECT_NE(absent.text.find("because no C++ compiler works"), std::string::npos) << absent.text;
  EXPECT_NE(absent.text.find("/no/such/compiler: No such file"), std::string::npos) << absent.text;
}

TEST_F(MainHostileFiles, FullTemporaryFolderIsNamed) {
  const std::string disk = (folder_ / "disk").string();
  fs::create_directory(disk);
  const std::string mount = "mount -t tmpfs -o size=64k tmpfs " + disk + " 2>/dev/null";
  if (geteuid() != 0 || std::system(mount.c_str()) != 0)
    GTEST_SKIP() << "cannot mount a small disk";
  const CliResult result = heddle(run_, "HEDDLE_CACHE_DIR=" + cache() + " TMPDIR=" + disk);
  EXPECT_EQ(std::system(("umount " + disk).c_str()), 0);
  EXPECT_EQ(result.code, 2) << result.text;
  EXPECT_NE(result.text.find("No space left on device"), std::string::npos) << result.text;
}

}  // namespace
}  // namespace heddle::tools::main_hostile_files_cpu_test
