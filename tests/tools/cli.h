// Runs the heddle command as users do.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace heddle::tools {

struct CliResult {
  int code = -1;
  std::string text;  // stdout and stderr
};

// Runs the command, which is in the folder of the test programs. `environment` is `NAME=VALUE ...`.
inline CliResult heddle(const std::string& arguments, const std::string& environment = "") {
  namespace fs = std::filesystem;
  const fs::path binary = fs::read_symlink("/proc/self/exe").parent_path() / "heddle";
  const std::string line = environment + " " + binary.string() + " " + arguments + " 2>&1";
  FILE* pipe = popen(line.c_str(), "r");
  CliResult result;
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer;
  size_t got = 0;
  while ((got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0) {
    result.text.append(buffer.data(), got);
  }
  const int status = pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return result;
}

// Owns a folder for the files of one test.
class Cli : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("heddle_cli_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  void expectError(const std::string& arguments, const std::string& message,
                   const std::string& environment = "") {
    const CliResult result = heddle(arguments, environment);
    EXPECT_EQ(result.code, 2) << arguments << "\n" << result.text;
    EXPECT_NE(result.text.find(message), std::string::npos) << arguments << "\n" << result.text;
  }

  std::filesystem::path folder_;
};

}  // namespace heddle::tools
