// Every system call that saves or loads a checkpoint, a model or tracked values fails in turn, in each way, on one of
// the ranks. The table of the outcomes is a part of share/doc/guarantees.md. HORTATOR_WRITE_FAULTS=1 writes it there.
#include <ATen/ops/full.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/background_save.hpp"
#include "checkpoint/write/save.hpp"
#include "formats/safetensors/writer.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "observe/trackers/trackers.hpp"
#include "support/catch.hpp"
#include "support/faults/faults.hpp"
#include "weights/weight_folder.hpp"
#include "weights/weight_source.hpp"

using namespace hortator;
using faults::Kind;
namespace fs = std::filesystem;

namespace {

/// A folder whose name no other path contains.
fs::path root() { return fs::absolute("faulty_calls"); }

checkpoint::Snapshot state_of(int number, int rank) {
  checkpoint::Snapshot made;
  made.common.put("weight", at::full({500, 30}, number));
  made.common.put("number", number);
  made.own.put("random", at::full({16}, number + rank, at::kByte));
  return made;
}

void save_state(const mpi::Communicator& comm, int number) {
  checkpoint::save(comm, root() / "checkpoint", state_of(number, comm.rank()));
}

void save_state_beside(const mpi::Communicator& comm, int number) {
  checkpoint::BackgroundSave saves;
  saves.start(comm, root() / "checkpoint", state_of(number, comm.rank()), {});
  saves.wait(comm);
}

/// The number of the state that the folder holds. Throws if none is complete, or on a rank that cannot read it.
int load_state(const mpi::Communicator& comm) {
  int number = 0;
  const checkpoint::Reader reader(comm, checkpoint::find(root() / "checkpoint"));
  mpi::all_or_none(comm, [&] {
    number = reader.values().get<int>("number");
    const bool is_whole = at::equal(reader.read("weight"), at::full({500, 30}, number));
    const auto own = reader.own(comm.rank()).get<at::Tensor>("random");
    if (!is_whole || !at::equal(own, at::full({16}, number + comm.rank(), at::kByte)))
      throw std::runtime_error("a mixture of versions");
  });
  return number;
}

void save_model(const mpi::Communicator& comm, int number) {
  const std::vector<weights::WeightToSave> weights = {{.name = "a", .bytes = 4000}, {.name = "b", .bytes = 4000}};
  const auto shards = weights::shard_weights(weights, 4000);
  static int saves = 0;
  weights::WeightFolder folder(root() / "model", "id" + std::to_string(++saves), {});
  const auto on_first = [&](const auto& work) {
    mpi::all_or_none(comm, [&] {
      if (comm.rank() == 0) work();
    });
  };
  try {
    on_first([&] { folder.begin(); });
    std::vector<formats::SafetensorsOutput> files;
    for (const auto& file : shards.files) {
      files.push_back({.path = folder.aside(file.name),
                       .plan = formats::plan_safetensors({{weights[file.weights.front()].name, {.shape = {1000}}}})});
    }
    formats::write_safetensors(comm, files,
                               [&](const std::string& /*name*/) { return at::full({1000}, number, at::kFloat); });
    on_first([&] { folder.publish(shards, weights); });
  } catch (...) {
    if (comm.rank() == 0) folder.abandon(shards);
    throw;
  }
}

int load_model(const mpi::Communicator& comm) {
  float number = 0;
  mpi::all_or_none(comm, [&] {
    const auto source = weights::open_weights(root() / "model");
    std::vector<float> numbers(2000);
    source->read("a", {0, 1000}, reinterpret_cast<std::byte*>(numbers.data()));
    source->read("b", {0, 1000}, reinterpret_cast<std::byte*>(numbers.data() + 1000));
    number = numbers.front();
    if (std::set<float>(numbers.begin(), numbers.end()).size() != 1) throw std::runtime_error("a mixture of versions");
  });
  return static_cast<int>(number);
}

constexpr const char* beside_the_run = "the same beside the run";

struct Operation {
  std::string name;
  std::function<void(const mpi::Communicator&, int)> save;  ///< a version
  std::function<int(const mpi::Communicator&)> load;        ///< the version
  bool fails_load = false;                                  ///< the fault is in loading
};

std::vector<Operation> operations() {
  return {{"save of a checkpoint", save_state, load_state},
          {beside_the_run, save_state_beside, load_state},
          {"load of a checkpoint", save_state, load_state, true},
          {"save of a model", save_model, load_model},
          {"load of a model", save_model, load_model, true}};
}

struct Failure {
  std::string name;
  faults::Fault fault;
};

std::vector<Failure> failures() {
  return {{"EIO", {.kind = Kind::error, .error = EIO}},       {"ENOSPC", {.kind = Kind::error, .error = ENOSPC}},
          {"EACCES", {.kind = Kind::error, .error = EACCES}}, {"ESTALE", {.kind = Kind::error, .error = ESTALE}},
          {"EINTR", {.kind = Kind::error, .error = EINTR}},   {"half", {.kind = Kind::shorter}}};
}

/// What happens when `work` is done while call `at` of rank `rank` fails.
struct Outcome {
  std::string call;     ///< that has failed; empty: there were fewer calls
  std::string problem;  ///< this rank's error
};

Outcome outcome_of(const mpi::Communicator& comm, int rank, faults::Fault fault, const std::function<void()>& work) {
  fault.reads = true;
  Outcome outcome;
  mpi::barrier(comm);
  if (comm.rank() == rank) faults::arm(root().string(), fault);
  try {
    work();
  } catch (const std::exception& error) {
    outcome.problem = error.what();
  }
  faults::disarm();
  outcome.call = mpi::broadcast(comm, comm.rank() == rank ? faults::last_hit() : std::string(), rank);
  return outcome;
}

using Cells = std::map<std::pair<std::string, std::string>, std::map<std::string, std::set<std::string>>>;

/// Fails call after call of one rank. Adds the outcomes to `cells`, by operation, call and failure.
void fail_calls(const mpi::Communicator& comm, const Operation& operation, const Failure& failure, int rank, int step,
                Cells& cells) {
  int number = 10;
  operation.save(comm, number);
  for (long at = 1;; at += step) {
    auto fault = failure.fault;
    fault.at = at;
    const auto outcome = outcome_of(comm, rank, fault, [&] {
      operation.fails_load ? static_cast<void>(operation.load(comm)) : operation.save(comm, number + 1);
    });
    if (outcome.call.empty()) return;
    INFO(operation.name << ", " << failure.name << " at call " << at << " (" << outcome.call << ") of rank " << rank
                        << ": " << outcome.problem);
    const bool has_failed = !outcome.problem.empty();
    const auto problems = mpi::all_gather(comm, outcome.problem);
    for (const auto& problem : problems) CHECK(problem.empty() != has_failed);
    if (has_failed) CHECK_THAT(outcome.problem, ContainsSubstring("faulty_calls"));
    const int found = operation.load(comm);
    if (operation.fails_load) {
      CHECK(found == number);
    } else {
      CHECK((found == number + 1 || (has_failed && found == number)));
      operation.save(comm, ++number);
      CHECK(operation.load(comm) == number);
    }
    cells[{operation.name, outcome.call}][failure.name].insert(has_failed ? "error" : "succeeds");
  }
}

std::string table_of(const Cells& cells) {
  std::ostringstream table;
  table << "| operation | call |";
  for (const auto& failure : failures()) table << ' ' << failure.name << " |";
  table << "\n|---|---|---|---|---|---|---|---|\n";
  for (const auto& operation : operations()) {
    for (const auto& [key, row] : cells) {
      if (key.first != operation.name) continue;
      table << "| " << key.first << " | " << key.second << " |";
      for (const auto& failure : failures()) {
        const auto cell = row.find(failure.name);
        const bool is_whole_only = failure.fault.kind == Kind::shorter && key.second != "write" && key.second != "read";
        std::string text;
        if (cell != row.end() && !is_whole_only) {
          for (const auto& outcome : cell->second) text += (text.empty() ? "" : " or ") + outcome;
        }
        table << ' ' << text << " |";
      }
      table << '\n';
    }
  }
  return table.str();
}

constexpr std::string_view begin_mark = "<!-- faults -->\n\n";
constexpr std::string_view end_mark = "\n<!-- end of faults -->";

Cells outcomes(const mpi::Communicator& comm, int step) {
  if (comm.rank() == 0) {
    fs::remove_all(root());
    fs::create_directories(root());
  }
  Cells cells;
  for (const auto& operation : operations()) {
    for (const auto& failure : failures()) {
      for (int rank = 0; rank < comm.size(); ++rank) fail_calls(comm, operation, failure, rank, step, cells);
    }
  }
  return cells;
}

std::vector<std::string> columns_of(const std::string& line) {
  std::vector<std::string> columns;
  std::istringstream parts(line.substr(1));
  for (std::string part; std::getline(parts, part, '|');) columns.push_back(part.substr(1, part.size() - 2));
  return columns;
}

struct Document {
  std::string text;
  std::size_t begin = 0;  ///< of the table
  std::size_t end = 0;
  Cells cells = {};
};

Document documented() {
  std::ostringstream content;
  content << std::ifstream(HORTATOR_GUARANTEES).rdbuf();
  Document found{.text = content.str()};
  found.begin = found.text.find(begin_mark) + begin_mark.size();
  found.end = found.text.find(end_mark);
  REQUIRE(found.begin < found.end);
  std::istringstream lines(found.text.substr(found.begin, found.end - found.begin));
  for (std::string line; std::getline(lines, line);) {
    const auto columns = columns_of(line);
    for (std::size_t i = 2; i < columns.size(); ++i) {
      for (const auto* outcome : {"error", "succeeds"}) {
        if (columns[i].find(outcome) != std::string::npos)
          found.cells[{columns[0], columns[1]}][failures().at(i - 2).name].insert(outcome);
      }
    }
  }
  return found;
}

/// Checks that each outcome in `cells` is in the document. `whole`: and that there is no other. The order of the calls
/// of threads that write beside the run changes from run to run, and so does which of them is failed.
void check_documented(const Cells& cells, bool whole) {
  auto left = documented().cells;
  for (const auto& [key, row] : cells) {
    for (const auto& [failure, outcomes] : row) {
      const bool is_shown = failure != "half" || key.second == "write" || key.second == "read";
      for (const auto& outcome : outcomes) {
        INFO(key.first << ", " << key.second << ", " << failure << ": " << outcome);
        if (is_shown) CHECK(left[key][failure].count(outcome) == 1);
      }
      if (key.first != beside_the_run && is_shown && whole) CHECK(left[key][failure] == outcomes);
    }
    if (whole) left.erase(key);
  }
  if (!whole) return;
  for (const auto& [key, row] : left) FAIL_CHECK(key.first << " makes no call of the kind " << key.second);
}

void write_document(Cells cells) {
  auto document = documented();
  for (const auto& [failure, outcomes] : document.cells) {
    if (failure.first != beside_the_run) continue;
    for (const auto& [name, known] : outcomes) cells[failure][name].insert(known.begin(), known.end());
  }
  document.text.replace(document.begin, document.end - document.begin, table_of(cells));
  std::ofstream(HORTATOR_GUARANTEES) << document.text;
}

}  // namespace

TEST_CASE("whichever call fails on one rank, all ranks get an error that names the file, or none; a whole state loads",
          "[pool]") {
  const auto comm = mpi::Communicator::world();
  const auto found = outcomes(comm, 5);
  if (comm.rank() != 0) return;
  for (const auto& operation : operations()) {
    INFO(operation.name);
    CHECK(std::ranges::any_of(found, [&](const auto& cell) { return cell.first.first == operation.name; }));
  }
  check_documented(found, false);
}

TEST_CASE("the table of failed calls is that of guarantees.md", "[.][whole]") {
  const auto comm = mpi::Communicator::world();
  const auto found = outcomes(comm, 1);
  if (comm.rank() != 0) return;
  if (std::getenv("HORTATOR_WRITE_FAULTS") != nullptr) write_document(found);
  check_documented(found, true);
}
