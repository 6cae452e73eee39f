#include "tools/bench/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "ir/base/check.h"
#include "tools/bench/csv.h"

namespace heddle::tools {
namespace {

using Cells = std::vector<std::string>;

// Returns the time that a copy of row.bytes bytes would take at the measured copy bandwidth.
double floorSeconds(const BenchRow& row, const Measurements& all) {
  return static_cast<double>(row.bytes) / all.copy_bytes_per_second;
}

std::string limitOf(const BenchRow& row, const Measurements& all) {
  constexpr double kTolerance = 0.15;
  const double floor = floorSeconds(row, all);
  if (row.bytes == 0) return "unknown";
  if (row.seconds < (1 - kTolerance) * floor) return "cache";
  return row.seconds <= (1 + kTolerance) * floor ? "memory" : "not memory";
}

// Returns the text of an instruction up to the first "(", such as "launch @k0". Shortens a result
// of more than 32 characters.
std::string shortText(const std::string& text) {
  constexpr size_t kMostCharacters = 32;
  const std::string start = text.substr(0, text.find('('));
  if (start.size() <= kMostCharacters) return start;
  return start.substr(0, kMostCharacters - 3) + "...";
}

// Returns the texts of all launches, with "+" between them.
std::string joined(const std::vector<BenchLaunch>& launches,
                   const std::function<std::string(const BenchLaunch&)>& textOf) {
  std::string text;
  for (const BenchLaunch& launch : launches) text += (text.empty() ? "" : "+") + textOf(launch);
  return text;
}

Cells headerOf(const BenchReport& report, bool has_gpu_columns) {
  Cells header = {"index", "instruction", "kernel", "us", "bytes", "GB/s", "of_copy"};
  if (report.roofline) header.insert(header.end(), {"floor_us", "limit"});
  if (has_gpu_columns) {
    header.insert(header.end(),
                  {"grid", "block", "registers", "local_bytes", "shared_bytes", "occupancy"});
  }
  return header;
}

void addGpuCells(const BenchRow& row, bool is_gpu, Cells& cells) {
  const auto add = [&](const std::function<std::string(const BenchLaunch&)>& textOf) {
    cells.push_back(is_gpu ? joined(row.launches, textOf) : "");
  };
  const auto addResource = [&](const auto& textOf) {
    add([&](const BenchLaunch& launch) {
      return launch.resources ? textOf(*launch.resources) : std::string("?");
    });
  };
  using Used = host::KernelResources;
  add([](const BenchLaunch& launch) {
    return launch.grid_y == 1 ? fmt::format("{}", launch.grid)
                              : fmt::format("{}x{}", launch.grid, launch.grid_y);
  });
  add([](const BenchLaunch& launch) { return fmt::format("{}", launch.block); });
  addResource([](const Used& used) { return fmt::format("{}", used.registers); });
  addResource([](const Used& used) { return fmt::format("{}", used.local_bytes); });
  addResource([](const Used& used) { return fmt::format("{}", used.shared_bytes); });
  addResource([](const Used& used) { return fmt::format("{:.2f}", used.occupancy); });
}

Cells cellsOf(const BenchRow& row, const BenchReport& report, bool has_gpu_columns) {
  const Measurements& all = report.measurements;
  Cells cells = {row.instruction < 0 ? "" : fmt::format("{}", row.instruction),
                 shortText(row.text),
                 joined(row.launches, [](const BenchLaunch& launch) { return launch.entry; }),
                 fmt::format("{:.3f}", 1e6 * row.seconds),
                 fmt::format("{}", row.bytes),
                 fmt::format("{:.2f}", 1e-9 * row.bytesPerSecond()),
                 fmt::format("{:.3f}", row.bytesPerSecond() / all.copy_bytes_per_second)};
  if (report.roofline) {
    cells.push_back(fmt::format("{:.3f}", 1e6 * floorSeconds(row, all)));
    cells.push_back(limitOf(row, all));
  }
  if (has_gpu_columns) addGpuCells(row, report.is_gpu, cells);
  return cells;
}

std::vector<Cells> tableOf(const BenchReport& report, bool has_gpu_columns) {
  std::vector<Cells> table = {headerOf(report, has_gpu_columns)};
  for (const BenchRow& row : report.measurements.rows) {
    table.push_back(cellsOf(row, report, has_gpu_columns));
  }
  table.push_back(cellsOf(report.measurements.total, report, has_gpu_columns));
  return table;
}

// Returns the table as text. Columns of texts are aligned to the left, columns of numbers to the
// right.
std::string aligned(const std::vector<Cells>& table) {
  std::vector<size_t> widths(table[0].size(), 0);
  for (const Cells& row : table) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const auto isText = [&](size_t column) {
    const std::string& name = table[0][column];
    return name == "instruction" || name == "kernel" || name == "limit";
  };
  std::string text;
  for (const Cells& row : table) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += isText(i) ? fmt::format("{:<{}}", row[i], widths[i])
                        : fmt::format("{:>{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

nlohmann::ordered_json launchJson(const BenchLaunch& launch, bool is_gpu) {
  nlohmann::ordered_json json = {{"kernel", launch.entry}};
  const auto orNull = [](bool known, const nlohmann::ordered_json& value) {
    return known ? value : nlohmann::ordered_json();
  };
  const host::KernelResources used = launch.resources.value_or(host::KernelResources());
  const bool known = launch.resources.has_value();
  json["grid"] = is_gpu ? nlohmann::ordered_json::array({launch.grid, launch.grid_y})
                        : nlohmann::ordered_json();
  json["block"] = orNull(is_gpu, launch.block);
  json["registers"] = orNull(known, used.registers);
  json["local_bytes"] = orNull(known, used.local_bytes);
  json["shared_bytes"] = orNull(known, used.shared_bytes);
  json["occupancy"] = orNull(known, used.occupancy);
  return json;
}

nlohmann::ordered_json rowJson(const BenchRow& row, const BenchReport& report) {
  const Measurements& all = report.measurements;
  nlohmann::ordered_json json;
  if (row.instruction >= 0) json["index"] = row.instruction;
  json["text"] = row.text;
  json["us"] = 1e6 * row.seconds;
  json["bytes"] = row.bytes;
  json["gb_per_second"] = 1e-9 * row.bytesPerSecond();
  json["of_copy"] = row.bytesPerSecond() / all.copy_bytes_per_second;
  if (report.roofline) {
    json["floor_us"] = 1e6 * floorSeconds(row, all);
    json["limit"] = limitOf(row, all);
  }
  if (row.instruction < 0) return json;
  json["launches"] = nlohmann::ordered_json::array();
  for (const BenchLaunch& launch : row.launches) {
    json["launches"].push_back(launchJson(launch, report.is_gpu));
  }
  return json;
}

}  // namespace

std::string benchText(const BenchReport& report) {
  const Measurements& all = report.measurements;
  return fmt::format("{} on {}, medians of {} runs\n", report.file, report.device, report.runs) +
         fmt::format("copy bandwidth {:.1f} GB/s, measured on {} MiB\n",
                     1e-9 * all.copy_bytes_per_second, all.copy_tensor_bytes >> 20) +
         aligned(tableOf(report, report.is_gpu));
}

std::string benchCsv(const BenchReport& report) {
  std::string text;
  for (const Cells& row : tableOf(report, true)) text += csvLine(row);
  return text;
}

std::string benchJson(const BenchReport& report) {
  const Measurements& all = report.measurements;
  nlohmann::ordered_json json = {{"file", report.file},
                                 {"device", report.device},
                                 {"runs", report.runs},
                                 {"copy_tensor_bytes", all.copy_tensor_bytes},
                                 {"copy_gb_per_second", 1e-9 * all.copy_bytes_per_second}};
  json["rows"] = nlohmann::ordered_json::array();
  for (const BenchRow& row : all.rows) json["rows"].push_back(rowJson(row, report));
  json["total"] = rowJson(all.total, report);
  return json.dump(2) + "\n";
}

}  // namespace heddle::tools
