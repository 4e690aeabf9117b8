#include "tools/checkpoint/diff.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <hortator/error.hpp>
#include <iomanip>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "accelerator/weights/checkpoint_weights.hpp"
#include "checkpoint/read/reader.hpp"
#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "tools/checkpoint/byte_bar.hpp"
#include "tools/checkpoint/difference.hpp"
#include "tools/checkpoint/listing.hpp"
#include "weights/weight_source.hpp"

namespace hortator::tools::checkpoints {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;
using Source = std::unique_ptr<weights::WeightSource>;

constexpr std::size_t max_threads = 16;

/// All tensors of a checkpoint as weights, under their full names.
class WholeCheckpoint final : public weights::WeightSource {
 public:
  explicit WholeCheckpoint(const std::filesystem::path& folder) : reader_(folder) {
    for (const auto& [name, spec] : reader_.tensors()) names_.push_back(name);
  }
  const std::filesystem::path& path() const override { return reader_.folder(); }
  const std::vector<std::string>& names() const override { return names_; }
  formats::TensorSpec spec(const std::string& name) const override { return reader_.tensors().at(name); }
  void read(const std::string& name, core::Range elements, std::byte* to) const override {
    reader_.read_elements(name, elements, to);
  }
  const StateDict& values() const { return reader_.values(); }

 private:
  checkpoint::Reader reader_;
  std::vector<std::string> names_;
};

Options diff_options() {
  Options options;
  options.named.add_options()("top", po::value<std::size_t>()->default_value(20)->value_name("N"),
                              "show the N tensors with the largest differences")(
      "tolerance", po::value<double>()->default_value(0)->value_name("X"),
      "treat values that differ by at most X as equal")(
      "model", po::value<std::size_t>()->default_value(0)->value_name("N"),
      "number of the model in a checkpoint that is compared with a model file")(
      "json", "print the differences as JSON")("help,h", "print this help");
  return options;
}

int print_diff_help() {
  std::cout
      << "usage: hortator checkpoint diff A B [options]\n\n"
         "Compares two checkpoints completely; otherwise the models in A and B: a checkpoint, .safetensors, .pt,\n"
         ".bin, an index, or a folder. If a folder has several checkpoints, the newest complete one is taken.\n"
         "Exit code: 0 equal, 1 different, 2 an input cannot be read.\n\n"
      << diff_options().named;
  return 0;
}

/// The two inputs.
struct Sides {
  fs::path a;
  fs::path b;
  std::size_t model = 0;

  bool are_checkpoints() const { return is_checkpoint(a) && is_checkpoint(b); }
  Source open(const fs::path& path) const {
    if (are_checkpoints()) return std::make_unique<WholeCheckpoint>(path);
    return accelerator::open_weights_or_checkpoint(path, model);
  }
};

struct Row {
  std::string name;
  std::int64_t elements = 0;
  Difference difference = {};
};

std::vector<Row> rows_of(const std::vector<std::string>& names, const weights::WeightSource& a) {
  std::vector<Row> rows;
  for (const auto& name : names) rows.push_back({.name = name, .elements = a.spec(name).elements()});
  return rows;
}

/// Compares with several threads, which open the files separately and take the next tensor when they finish one.
void compare(std::vector<Row>& rows, const Sides& sides, double tolerance, ByteBar& bar) {
  std::atomic<std::size_t> next = 0;
  std::exception_ptr problem;
  std::mutex failing;
  const auto work = [&] {
    try {
      const auto a = sides.open(sides.a);
      const auto b = sides.open(sides.b);
      for (auto i = next++; i < rows.size(); i = next++) {
        const auto left = a->tensor(rows[i].name);
        rows[i].difference = difference(left, b->tensor(rows[i].name), tolerance);
        bar.advance(static_cast<std::int64_t>(left.nbytes()));
      }
    } catch (...) {
      const std::lock_guard lock(failing);
      problem = std::current_exception();
      next = rows.size();
    }
  };
  std::vector<std::thread> threads;
  const auto thread_count =
      std::min<std::size_t>({std::max(std::thread::hardware_concurrency(), 1U), rows.size(), max_threads});
  for (std::size_t i = 1; i < thread_count; ++i) threads.emplace_back(work);
  work();
  for (auto& thread : threads) thread.join();
  if (problem) std::rethrow_exception(problem);
}

std::string value_text(const StateDict::Value& value) {
  std::ostringstream out;
  out << std::setprecision(17);
  std::visit(
      [&](const auto& held) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(held)>, at::Tensor>) out << held;
      },
      value);
  return std::move(out).str();
}

/// One line for each number or text that differs.
std::vector<std::string> compare_values(const StateDict& a, const StateDict& b) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : a.values()) {
    const auto other = b.values().find(name);
    if (other == b.values().end()) {
      lines.push_back(text::concat("- ", name, "  = ", value_text(value)));
    } else if (value_text(value) != value_text(other->second)) {
      lines.push_back(text::concat("~ ", name, "  = ", value_text(value), " | ", value_text(other->second)));
    }
  }
  for (const auto& [name, value] : b.values()) {
    if (!a.contains(name)) lines.push_back(text::concat("+ ", name, "  = ", value_text(value)));
  }
  return lines;
}

void print_as_json(const NameComparison& names, const std::vector<Row>& rows, const std::vector<std::string>& values,
                   bool is_same) {
  auto tensors = nlohmann::ordered_json::array();
  for (const auto& [name, elements, difference] : rows) {
    tensors.push_back({{"name", name},
                       {"elements", elements},
                       {"different_elements", difference.elements},
                       {"largest", core::json_of(difference.largest)}});
  }
  print_json("diff", {{"is_same", is_same},
                      {"only_in_a", names.only_in_a},
                      {"only_in_b", names.only_in_b},
                      {"other_shape", names.other_shape},
                      {"other_type", names.other_type},
                      {"values", values},
                      {"compared_tensors", names.comparable.size()},
                      {"different_tensors", tensors}});
}

void print_names(const NameComparison& names, const weights::WeightSource& a, const weights::WeightSource& b) {
  for (const auto& name : names.only_in_a) std::cout << "- " << name << "  " << to_string(a.spec(name)) << '\n';
  for (const auto& name : names.only_in_b) std::cout << "+ " << name << "  " << to_string(b.spec(name)) << '\n';
  for (const auto* changed : {&names.other_shape, &names.other_type}) {
    for (const auto& name : *changed) {
      std::cout << "~ " << name << "  " << to_string(a.spec(name)) << " | " << to_string(b.spec(name)) << '\n';
    }
  }
}

void print_rows(std::vector<Row> rows, std::size_t top) {
  if (rows.empty()) return;
  std::ranges::stable_sort(rows, std::greater(), [](const Row& row) { return row.difference.largest; });
  std::cout << "   largest  elements that differ  tensor\n";
  for (std::size_t i = 0; i < std::min(top, rows.size()); ++i) {
    const auto& [name, elements, difference] = rows[i];
    std::cout << std::setw(10) << std::setprecision(3) << difference.largest << std::setw(22)
              << text::concat(difference.elements, " of ", elements) << "  " << name << '\n';
  }
  if (rows.size() > top) std::cout << "and " << rows.size() - top << " more tensors (--top)\n";
}

int compare_all(const Sides& sides, std::size_t top, double tolerance, bool as_json) {
  const auto a = sides.open(sides.a);
  const auto b = sides.open(sides.b);
  const auto names = compare_names(*a, *b);
  auto rows = rows_of(names.comparable, *a);
  std::int64_t bytes = 0;
  for (const auto& name : names.comparable) bytes += a->spec(name).bytes();
  {
    ByteBar bar("diff", bytes);
    compare(rows, sides, tolerance, bar);
  }
  std::erase_if(rows, [](const Row& row) { return row.difference.elements == 0; });
  std::vector<std::string> values;
  if (sides.are_checkpoints()) {
    values = compare_values(static_cast<const WholeCheckpoint&>(*a).values(),
                            static_cast<const WholeCheckpoint&>(*b).values());
  }
  const auto others = names.only_in_a.size() + names.only_in_b.size() + names.other_shape.size();
  const bool is_same = rows.empty() && values.empty() && others + names.other_type.size() == 0;
  if (as_json) {
    print_as_json(names, rows, values, is_same);
    return is_same ? 0 : 1;
  }
  print_names(names, *a, *b);
  for (const auto& line : values) std::cout << line << '\n';
  print_rows(rows, top);
  std::cout << rows.size() << " of " << text::count(static_cast<long long>(names.comparable.size()), "tensor")
            << " that both have " << (rows.size() == 1 ? "differs" : "differ") << '\n';
  return is_same ? 0 : 1;
}

}  // namespace

int diff(const Arguments& arguments) {
  const auto chosen = parse(arguments, with_text(diff_options(), "paths"));
  if (chosen.count("help") > 0) return print_diff_help();
  const auto paths =
      chosen.count("paths") > 0 ? chosen["paths"].as<std::vector<std::string>>() : std::vector<std::string>();
  if (paths.size() != 2)
    throw UsageError({.what = text::concat("Expected two paths, got ", paths.size()),
                      .hint = "for example: hortator checkpoint diff runs/a/checkpoint runs/b/checkpoint"});
  try {
    return compare_all({.a = newest_at(paths[0]), .b = newest_at(paths[1]), .model = chosen["model"].as<std::size_t>()},
                       chosen["top"].as<std::size_t>(), chosen["tolerance"].as<double>(), chosen.count("json") > 0);
  } catch (const UsageError&) {
    throw;
  } catch (const std::exception& error) {
    std::cerr << "hortator: " << error.what() << '\n';
    return 2;  // 1 means that something differs
  }
}

}  // namespace hortator::tools::checkpoints
